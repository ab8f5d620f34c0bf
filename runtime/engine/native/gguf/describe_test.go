package gguf

import "testing"

// TestKVBytes: the bytes of the KV cache per token are those of the layers that attend to all tokens.
func TestKVBytes(t *testing.T) {
	type pairs = map[string]any
	for name, c := range map[string]struct {
		arch  string
		set   pairs // beside 12 layers of 16 heads of 64 values
		heads int
		bytes int64
	}{
		"dense":                   {"llama", pairs{"attention.head_count_kv": uint32(4)}, 4, 12 * 4 * 128 * 2},
		"without grouped heads":   {"llama", nil, 16, 12 * 16 * 128 * 2},
		"other values":            {"llama", pairs{"attention.head_count_kv": uint32(4), "attention.key_length": uint32(96), "attention.value_length": uint32(32)}, 4, 12 * 4 * 128 * 2},
		"heads by layer":          {"granitehybrid", pairs{"attention.head_count_kv": []int32{0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 2}}, 4, 6 * 128 * 2},
		"more layers than it has": {"lfm2", pairs{"attention.head_count_kv": []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9}}, 1, 12 * 128 * 2},
		"negative heads":          {"jamba", pairs{"attention.head_count_kv": []int32{-1, 8}}, 8, 8 * 128 * 2},
		"query heads by layer":    {"openelm", pairs{"attention.head_count": []int32{8, 12}, "attention.head_count_kv": []int32{2, 3}, "attention.key_length": uint32(64)}, 3, 5 * 128 * 2},
		"every third layer":       {"qwen35moe", pairs{"attention.head_count_kv": uint32(2), "full_attention_interval": uint32(3)}, 2, 4 * 2 * 128 * 2},
		"the default interval":    {"qwen3next", pairs{"attention.head_count_kv": uint32(2)}, 2, 3 * 2 * 128 * 2},
		"layers that draft":       {"qwen35", pairs{"attention.head_count_kv": uint32(2), "nextn_predict_layers": uint32(1)}, 2, 2 * 2 * 128 * 2},
		"drafts of a dense model": {"glm4moe", pairs{"attention.head_count_kv": uint32(2), "nextn_predict_layers": uint32(2)}, 2, 10 * 2 * 128 * 2},
		"compressed": {"deepseek2", pairs{
			"attention.head_count_kv": uint32(1), "attention.key_length": uint32(320), "attention.value_length": uint32(256),
			"attention.key_length_mla": uint32(192), "attention.value_length_mla": uint32(128),
		}, 1, 12 * 320 * 2},
		"not compressed, as of old files": {"deepseek2", pairs{"attention.head_count_kv": uint32(16), "attention.key_length": uint32(192), "attention.value_length": uint32(128)}, 16, 12 * 16 * 320 * 2},
		"compressed in some layers":       {"kimi-linear", pairs{"attention.head_count_kv": []int32{0, 0, 0, 1, 0, 0, 0, 1}, "attention.key_length": uint32(320), "attention.key_length_mla": uint32(192)}, 1, 2 * 320 * 2},
		"no attention":                    {"mamba", pairs{"attention.head_count": uint32(0)}, 0, 0},
		"a window":                        {"gemma3", pairs{"attention.head_count_kv": uint32(4), "attention.sliding_window": uint32(512)}, 4, 0},
		"a window that is not used":       {"phi3", pairs{"attention.head_count_kv": uint32(4), "attention.sliding_window": uint32(512)}, 4, 12 * 4 * 128 * 2},
		"a window over all":               {"qwen2", pairs{"attention.head_count_kv": uint32(4), "attention.sliding_window": uint32(4096)}, 4, 12 * 4 * 128 * 2},
		"an index of keys":                {"deepseek32", pairs{"attention.head_count_kv": uint32(1), "attention.key_length_mla": uint32(192), "attention.indexer.key_length": uint32(128)}, 1, 0},
		"absurd":                          {"llama", pairs{"attention.head_count_kv": uint32(1 << 30), "attention.key_length": uint32(1 << 30)}, 1 << 30, 0},
	} {
		w := NewWriter(3).Set("general.architecture", c.arch)
		all := pairs{"block_count": uint32(12), "embedding_length": uint32(1024), "attention.head_count": uint32(16), "context_length": uint32(4096)}
		for key, v := range c.set {
			all[key] = v
		}
		for key, v := range all {
			w.Set(c.arch+"."+key, v)
		}
		data, err := w.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if m := f.Describe(); m.KVHeads != c.heads || m.KVBytes != c.bytes {
			t.Errorf("%s: %d heads, %d bytes; want %d and %d", name, m.KVHeads, m.KVBytes, c.heads, c.bytes)
		}
	}
}
