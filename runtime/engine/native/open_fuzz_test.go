package native_test

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// fuzzSeeds are models so small that mutations are likely to hit relevant bytes: one of each kind, and damaged ones.
func fuzzSeeds() []blueprint {
	experts := tiny()
	experts.vocab, experts.layers, experts.experts, experts.feedForward = 12, 1, 3, 4
	dense, moe, quantised := experts, experts, experts
	dense.architecture, dense.experts, dense.used, dense.tied = "qwen3", 0, 0, true
	moe.architecture, moe.tied = "qwen3moe", true
	quantised.kind, quantised.width, quantised.dim, quantised.feedForward, quantised.ropeFreqs = tensor.Q8_0, 32, 8, 32, true
	seeds := []blueprint{experts, dense, moe, quantised}
	for key, v := range map[string]any{
		"llama.attention.head_count": uint32(1 << 20), "llama.expert_used_count": uint32(3), "llama.rope.freq_base": float32(1e30),
		"llama.embedding_length": uint32(1 << 20), "llama.block_count": uint32(4096), "tokenizer.ggml.bos_token_id": uint32(1 << 31),
		"llama.attention.layer_norm_rms_epsilon": float32(1e-30), "llama.attention.causal": true, "llama.rope.scaling.attn_factor": float32(1e30),
		"llama.rope.dimension_sections": []int32{1, 1, 0, 0},
	} {
		p := experts
		p.set = map[string]any{key: v}
		seeds = append(seeds, p)
	}
	return seeds
}

// try opens data as a model and computes a prompt and a token: a one-line error or logits, but no panic.
func try(t *testing.T, data []byte, prompt string) {
	t.Helper()
	e, err := native.OpenBytes("fuzzed.gguf", data, native.Options{Context: 24, MaxBatch: 8, Threads: 1, Memory: 64 << 20})
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		return
	}
	defer e.Close()
	e.SetHooks(engine.Hooks{Split: true, Experts: true, Picks: true})
	tokens := append(e.Encode(nil, prompt, true), 0)
	s := &sequence{tokens: append(tokens[:min(len(tokens), 6)], 0)}
	forward(t, e, s.next(len(s.tokens)-1, true, true), s)
	forward(t, e, s.next(1, false, true), s)
	for pos, logits := range s.logits {
		if len(logits) != e.Model().Vocab {
			t.Errorf("%d logits at position %d, for %d tokens", len(logits), pos, e.Model().Vocab)
		}
	}
	e.Piece(argmax(s.logits[0]))
}

func FuzzOpen(f *testing.F) {
	for _, p := range fuzzSeeds() {
		f.Add(p.bytes(f), "w3 <s>é")
	}
	f.Fuzz(try)
}

// TestChangedBytes sets every byte of a model, most of which are metadata, to 0 and 255 and flips one bit.
func TestChangedBytes(t *testing.T) {
	data := fuzzSeeds()[0].bytes(t)
	for at, b := range data {
		for _, other := range []byte{0, 0xff, b ^ 0x10, b + 1} {
			data[at] = other
			try(t, data, "w3")
		}
		data[at] = b
	}
}
