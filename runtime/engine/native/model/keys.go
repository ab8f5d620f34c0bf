package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// What the engine does with a key: ReadConfig reads it, the key does not change the result, or it is refused unless it
// has one of the values that do not change the result.
var applied, irrelevant []string

func only(values ...string) []string { return values }

// keys lists the metadata of a model below the prefix of its architecture, as llama.cpp's loaders of the supported
// architectures and its converters know it. A key that is not here may change the result, and is refused.
var keys = map[string][]string{
	"attention.head_count":             applied,
	"attention.head_count_kv":          applied,
	"attention.key_length":             applied,
	"attention.layer_norm_rms_epsilon": applied,
	"attention.value_length":           applied, // must be the key length
	"block_count":                      applied,
	"context_length":                   applied,
	"embedding_length":                 applied,
	"expert_count":                     applied,
	"expert_feed_forward_length":       applied, // llama ignores it: the width is feed_forward_length
	"expert_used_count":                applied,
	"feed_forward_length":              applied,
	"rope.dimension_count":             applied, // must be the key length
	"rope.freq_base":                   applied,
	"rope.scale_linear":                applied, // old name of rope.scaling.factor
	"rope.scaling.attn_factor":         applied,
	"rope.scaling.factor":              applied,
	"rope.scaling.type":                applied,

	"attention.causal":                  only("true"),
	"attention.clamp_kqv":               only("0"),
	"attention.max_alibi_bias":          only("0"),
	"attention.scale":                   only("0"),
	"attention.shared_kv_layers":        only("0"),
	"attention.sliding_window":          only("0"),
	"embedding_scale":                   only("0", "1"),
	"expert_gating_func":                only("0", "1"), // not set, softmax
	"expert_group_count":                only("0", "1"),
	"expert_shared_count":               only("0"),
	"expert_shared_feed_forward_length": only("0"),
	"expert_weights_norm":               only("true"),
	"expert_weights_scale":              only("0", "1"),
	"leading_dense_block_count":         only("0"),
	"logit_scale":                       only("0", "1"),
	"nextn_predict_layers":              only("0"),
	"norm_top_k_prob":                   only("true"), // Ollama's name of expert_weights_norm
	"residual_scale":                    only("0", "1"),
	"rope.scaling.alpha":                only("0"),
	"rope.scaling.yarn_attn_factor":     only("1"),
	"rope.scaling.yarn_ext_factor":      only("-1", "0"), // not set, off
	"rope.scaling.yarn_log_multiplier":  only("0"),
	"use_parallel_residual":             only("false"),

	"attention.head_dim":                   irrelevant, // Ollama writes it beside key_length
	"attention.key_length_swa":             irrelevant, // without a sliding window
	"attention.layer_norm_epsilon":         irrelevant, // of LayerNorm; these architectures use RMSNorm
	"attention.value_length_swa":           irrelevant,
	"classifier.output_labels":             irrelevant, // needs a tensor that is refused
	"embedding_length_out":                 irrelevant, // of embedding requests
	"expert_group_used_count":              irrelevant, // with at most one group
	"pooling_type":                         irrelevant, // of embedding requests
	"rope.dimension_count_swa":             irrelevant,
	"rope.freq_base_swa":                   irrelevant,
	"rope.scaling.finetuned":               irrelevant, // information for the user
	"rope.scaling.original_context_length": irrelevant, // of YaRN, which is refused
	"rope.scaling.yarn_beta_fast":          irrelevant, // of YaRN
	"rope.scaling.yarn_beta_slow":          irrelevant,
	"tensor_data_layout":                   irrelevant,
	"vocab_size":                           irrelevant, // the vocabulary's own size counts
}

// checkKeys refuses keys of the architecture that are not known, and values that would change the result.
func (r *reader) checkKeys() error {
	for _, key := range r.m.Keys() {
		name, ours := strings.CutPrefix(key, r.prefix+".")
		if !ours {
			continue
		}
		supported, known := keys[name]
		if !known {
			return fmt.Errorf("metadata %s is not supported by the native engine", clean.Quote(key))
		}
		if value := r.m.Text(key); len(supported) > 0 && !slices.Contains(supported, value) {
			return fmt.Errorf("%s of %s is not supported by the native engine; supported: %s",
				key, clean.Quote(value), strings.Join(supported, ", "))
		}
	}
	return nil
}
