package native_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// logitsOf returns the logits of a text.
func logitsOf(t *testing.T, e engine.Engine) (all []float32) {
	t.Helper()
	compute(t, e, text(3, 20, 262), 20, func(_ int, logits []float32, _ []uint16) { all = append(all, logits...) })
	return all
}

// harmless are metadata that llama.cpp ignores for these architectures, with values far from the typical ones.
func harmless(p blueprint) blueprint {
	p.set = map[string]any{}
	for key, v := range map[string]any{
		"attention.head_dim": uint32(3), "attention.key_length_swa": uint32(2), "attention.layer_norm_epsilon": float32(0.5),
		"attention.value_length_swa": uint32(2), "classifier.output_labels": []string{"yes", "no", "maybe"}, "embedding_length_out": uint32(8),
		"expert_group_used_count": uint32(3), "pooling_type": uint32(3), "rope.dimension_count_swa": uint32(2), "rope.freq_base_swa": float32(7),
		"rope.scaling.finetuned": true, "rope.scaling.original_context_length": uint32(8), "rope.scaling.yarn_beta_fast": float32(3),
		"rope.scaling.yarn_beta_slow": float32(2), "tensor_data_layout": "Meta AI original pth", "vocab_size": uint32(5),
		"attention.causal": true, "attention.sliding_window": uint32(0), "nextn_predict_layers": uint32(0),
		"expert_gating_func": uint32(1), "expert_weights_norm": true, "norm_top_k_prob": true, "expert_weights_scale": float32(1),
		"rope.scaling.yarn_ext_factor": float32(-1), "logit_scale": float32(1), "rope.scaling.yarn_attn_factor": float32(1),
	} {
		p.set[p.architecture+"."+key] = v
	}
	if p.experts > 0 { // llama.cpp refuses it without experts
		p.set[p.architecture+".expert_group_count"] = uint32(1)
	}
	return p
}

// keyed returns a small model of each architecture.
func keyed() []blueprint {
	mixtral, dense, moe := tiny(), tiny(), tiny()
	mixtral.kind, mixtral.width, mixtral.dim, mixtral.feedForward = tensor.Q8_0, 64, 16, 64
	dense, moe = mixtral, mixtral
	dense.architecture, dense.experts, dense.used = "qwen3", 0, 0
	moe.architecture = "qwen3moe"
	return []blueprint{mixtral, dense, moe}
}

// TestHarmlessMetadata sets the metadata that do not change the result.
func TestHarmlessMetadata(t *testing.T) {
	for _, p := range keyed() {
		t.Run(p.String(), func(t *testing.T) {
			opt := native.Options{Threads: 1}
			if !slices.Equal(logitsOf(t, p.open(t, opt)), logitsOf(t, harmless(p).open(t, opt))) {
				t.Error("the logits have changed")
			}
		})
	}
}

// TestRefusedMetadata opens models with metadata that change the result, or that are not known.
func TestRefusedMetadata(t *testing.T) {
	for key, v := range map[string]any{
		"attention.causal": false, "attention.clamp_kqv": float32(8), "attention.max_alibi_bias": float32(8), "attention.scale": float32(0.1),
		"attention.shared_kv_layers": uint32(1), "attention.sliding_window": uint32(4096), "embedding_scale": float32(12),
		"expert_gating_func": uint32(2), "expert_group_count": uint32(2), "expert_shared_count": uint32(1),
		"expert_shared_feed_forward_length": uint32(64), "expert_weights_norm": false, "expert_weights_scale": float32(2.5),
		"leading_dense_block_count": uint32(1), "logit_scale": float32(math.NaN()), "nextn_predict_layers": uint32(1), "norm_top_k_prob": false,
		"residual_scale": float32(0.22), "rope.scaling.alpha": float32(1000), "rope.scaling.yarn_attn_factor": float32(1.2),
		"rope.scaling.yarn_ext_factor": float32(1), "rope.scaling.yarn_log_multiplier": float32(0.1), "use_parallel_residual": true,
		"rope.scaling.type": "longrope", "rope.scaling.attn_factor": float32(-1), "rope.dimension_count": uint32(8),
		"rope.dimension_sections": []int32{8, 8, 0, 0}, "attention.sliding_window_pattern": []bool{true, false}, "final_logit_softcapping": float32(30),
		"attention.head_count_kv": []uint32{2, 2}, "expert_used_count": []uint32{2, 1}, "of_the\nfuture": true,
	} {
		for _, p := range keyed() {
			p.set = map[string]any{p.architecture + "." + key: v}
			want, _, _ := strings.Cut(key, "\n")
			if key == "rope.scaling.attn_factor" {
				want = "attention factor -1"
			}
			refused(t, "bad.gguf", p.opener(t), "load model", want)
		}
	}
}

// TestRefusedShapes opens models that llama.cpp refuses, too.
func TestRefusedShapes(t *testing.T) {
	p := keyed()
	mixtral, dense, moe := p[0], p[1], p[2]
	dense.ropeFreqs = true
	refused(t, "bad.gguf", dense.opener(t), `tensor "rope_freqs.weight" is not used by the native engine for architecture qwen3`)
	dense.ropeFreqs, dense.experts, dense.used = false, 4, 2
	refused(t, "bad.gguf", dense.opener(t), "architecture qwen3 with 4 experts is not supported")
	moe.experts, moe.used = 0, 0
	refused(t, "bad.gguf", moe.opener(t), "architecture qwen3moe with 0 experts is not supported")
	moe = p[2]
	moe.set = map[string]any{"qwen3moe.expert_feed_forward_length": nil} // the width of all experts together
	refused(t, "bad.gguf", moe.opener(t), "tensor blk.0.ffn_gate_exps.weight has dimensions [64 64 6], expected [64 32 6]")
	mixtral.dim = 7
	mixtral.kind = tensor.F32
	refused(t, "bad.gguf", mixtral.opener(t), "heads of 7 values cannot be rotated in pairs")
}

// TestAppliedMetadata sets metadata in other ways that mean the same, and values that must change the result. The
// agreement tests cover the typical ways.
func TestAppliedMetadata(t *testing.T) {
	models := keyed()
	with := func(p blueprint, change func(*blueprint), set map[string]any) []float32 {
		change(&p)
		p.set = map[string]any{}
		for key, v := range set {
			p.set[p.architecture+"."+key] = v
		}
		return logitsOf(t, p.open(t, native.Options{Threads: 1}))
	}
	as := func(*blueprint) {}
	scaled := func(p *blueprint) { p.scaling = 4 }
	for _, c := range []struct {
		name        string
		model       blueprint
		first       func(*blueprint)
		second      func(*blueprint)
		set         map[string]any
		differently bool
	}{
		{"old name", models[0], scaled, as, map[string]any{"rope.scale_linear": float32(4)}, false},
		{"linear by default", models[0], scaled, scaled, map[string]any{"rope.scaling.type": nil}, false},
		{"no scaling", models[0], as, scaled, map[string]any{"rope.scaling.type": "none"}, false},
		{"scaling", models[0], as, scaled, nil, true},
		{"factor 0", models[0], as, as, map[string]any{"rope.scaling.factor": float32(0), "rope.scale_linear": float32(4)}, false},
		{"attention factor", models[1], as, as, map[string]any{"rope.scaling.attn_factor": float32(1.5)}, true},
		{"width of experts", models[2], as, as, map[string]any{"expert_feed_forward_length": nil, "feed_forward_length": uint32(128)}, false},
		{"other width", models[0], as, as, map[string]any{"expert_feed_forward_length": uint32(32)}, false},
		{"rotary base", models[2], as, as, map[string]any{"rope.freq_base": float32(100)}, true},
		{"default base", models[2], as, as, map[string]any{"rope.freq_base": nil}, true},
		{"epsilon", models[2], as, as, map[string]any{"attention.layer_norm_rms_epsilon": float32(0.5)}, true},
		{"experts used", models[2], as, as, map[string]any{"expert_used_count": uint32(3)}, true},
		{"lengths of heads", models[0], as, as, map[string]any{
			"attention.key_length": nil, "attention.value_length": nil, "rope.dimension_count": nil,
		}, false},
	} {
		if same := slices.Equal(with(c.model, c.first, nil), with(c.model, c.second, c.set)); same == c.differently {
			t.Errorf("%s: the logits are the same: %v", c.name, same)
		}
	}
}
