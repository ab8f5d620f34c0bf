package native_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// tiny returns a model of a few kilobytes, with experts.
func tiny() blueprint {
	return blueprint{
		architecture: "llama", kind: tensor.F32, layers: 2, width: 16, heads: 4, kvHeads: 2, dim: 4, feedForward: 8, vocab: 262,
		experts: 6, used: 2, context: 32,
	}
}

// refused expects a one-line error that contains the file name and want, and allocates at most a few megabytes.
func refused(t *testing.T, name string, open func() (*native.Engine, error), want ...string) {
	t.Helper()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	e, err := open()
	goruntime.ReadMemStats(&after)
	if err == nil {
		_ = e.Close()
		t.Errorf("%s was accepted", name)
		return
	}
	for _, want := range append(want, name) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 8<<20 {
		t.Errorf("%q took %d bytes", err, spent)
	}
}

// TestDamagedFile opens files with wrong bytes.
func TestDamagedFile(t *testing.T) {
	whole := tiny().bytes(t)
	patch := func(at int, v uint64) []byte {
		data := bytes.Clone(whole)
		binary.LittleEndian.PutUint64(data[at:], v)
		return data
	}
	version := func(n byte) []byte { data := bytes.Clone(whole); data[4] = n; return data }
	moved := bytes.Index(whole, []byte("output_norm.weight")) + len("output_norm.weight") + 4 + 8 + 4
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"text":    {[]byte("# A card, and no model.\n"), "is not a GGUF file"},
		"empty":   {nil, "is empty"},
		"v1":      {version(1), "has GGUF version 1; supported: 2 and 3"},
		"v4":      {version(4), "has GGUF version 4; supported: 2 and 3"},
		"tensors": {patch(8, 1<<60), "is truncated or damaged: it declares 1152921504606846976 tensors"},
		"pairs":   {patch(16, 1<<40), "is truncated or damaged: it declares 1099511627776 metadata pairs"},
		"key":     {patch(24, 1<<50), "is truncated: metadata key"},
		"far":     {patch(moved, 1<<40), `tensor "output_norm.weight" needs 64 bytes from byte 1099511627776 on`},
		"wraps":   {patch(moved, math.MaxUint64&^31), `tensor "output_norm.weight" needs 64 bytes`},
		"odd":     {patch(moved, 4), `tensor "output_norm.weight" at offset 4 is not aligned`},
	} {
		path := filepath.Join(t.TempDir(), name+".gguf")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, name+".gguf", func() (*native.Engine, error) { return native.Open(path, native.Options{}) }, c.want)
	}
	if _, err := native.Open(filepath.Join(t.TempDir(), "none.gguf"), native.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	refused(t, "", func() (*native.Engine, error) { return native.Open(t.TempDir(), native.Options{}) }, "is not a regular file")
}

// TestTruncatedFile truncates a model in each part: header, metadata, tensor names, tensor data.
func TestTruncatedFile(t *testing.T) {
	whole := tiny().bytes(t)
	for n := 0; n < len(whole); n += 41 {
		refused(t, "", func() (*native.Engine, error) { return native.OpenBytes("cut.gguf", whole[:n:n], native.Options{}) })
	}
}

// TestInconsistentFile opens complete files with contradictory or unsupported content.
func TestInconsistentFile(t *testing.T) {
	nan, half := float32(math.NaN()), shape{tensor.F16, []uint64{16}}
	metadata := map[string][]struct {
		value any
		want  string
	}{
		"general.architecture": {
			{"mamba", `architecture "mamba" is not supported by the native engine; supported: llama, qwen3, qwen3moe`},
			{nil, "general.architecture is not in the file"},
			{uint32(1), "general.architecture is uint32, expected string"},
		},
		"llama.block_count": {
			{nil, "llama.block_count is not in the file"},
			{uint32(0), "read llama.block_count: 0 is not between 1 and 4096"},
			{uint32(3), "tensor blk.2.attn_norm.weight is missing"},
			{uint32(1), `tensor "blk.1.`},
			{uint64(1 << 40), "1099511627776 is not between"},
		},
		"llama.embedding_length": {
			{nil, "llama.embedding_length is not in the file"}, {uint32(24), "tensor token_embd.weight has dimensions [16 262], expected [24 262]"},
		},
		"llama.context_length": {{nil, "llama.context_length is not in the file"}, {uint32(0), "read llama.context_length: 0"}},
		"llama.attention.head_count": {
			{nil, "llama.attention.head_count is not in the file"},
			{uint32(0), "read llama.attention.head_count: 0 is not between"},
			{int32(-4), "expected no negative number"},
			{uint32(5), "5 heads cannot share 2 KV heads evenly"},
			{uint32(1 << 19), "are too wide"},
		},
		"llama.attention.head_count_kv": {
			{uint32(0), "read llama.attention.head_count_kv: 0"},
			{uint32(3), "4 heads cannot share 3 KV heads evenly"},
			{uint32(4), "tensor blk.0.attn_k.weight has dimensions [16 8], expected [16 16]"},
		},
		"llama.attention.key_length": {{uint32(8), "llama.attention.value_length of 4 with heads of 8 is not supported"}},
		"llama.rope.dimension_count": {{uint32(6), "llama.rope.dimension_count of 6 with heads of 4 is not supported"}, {uint32(2), "rope.dimension_count of 2"}},
		"llama.rope.freq_base":       {{float32(0), "rotary base 0 is out of range"}, {nan, "rotary base NaN"}, {uint32(1), "expected a float"}},
		"llama.expert_count":         {{uint32(1), "2 of 1 experts used"}, {uint32(0), "2 of 0 experts used"}, {uint32(5), "expected [16 5]"}},
		"llama.expert_used_count":    {{uint32(7), "7 of 6 experts used"}, {nil, "0 of 6 experts used"}},
		"llama.feed_forward_length":  {{uint32(0), "feed-forward of width 0"}, {uint32(9), "tensor blk.0.ffn_gate_exps.weight has dimensions [16 8 6], expected [16 9 6]"}},
		"tokenizer.ggml.tokens":      {{nil, "tokenizer.ggml.tokens is not in the file"}, {[]string{"a", "b"}, "the vocabulary has 2 tokens, the embedding 262 rows"}},
		"tokenizer.ggml.model":       {{"bert", `tokenizer.ggml.model is "bert"; supported: gpt2, llama`}},
		"tokenizer.ggml.token_type":  {{[]int32{1}, "1 token types for 262 tokens"}},
		"llama.rope.scaling.type":    {{"yarn", `"yarn" is not supported by the native engine; supported: none, linear`}},
		"llama.rope.scaling.factor":  {{float32(-2), "rotary scale -2 is out of range"}, {"2", "llama.rope.scaling.factor is string"}},
		"llama.attention.layer_norm_rms_epsilon": {
			{nan, "epsilon of the norms NaN is out of range"}, {nil, "epsilon of the norms 0 is out of range"}, {float32(math.Inf(1)), "epsilon of the norms +Inf"}, {float32(-1), "epsilon of the norms -1"},
		},
	}
	for key, cases := range metadata {
		for _, c := range cases {
			p := tiny()
			p.set = map[string]any{key: c.value}
			refused(t, "bad.gguf", p.opener(t), "load model", c.want)
		}
	}
	tensors := map[string]struct {
		instead shape
		want    string
	}{
		"token_embd.weight":          {shape{}, "tensor token_embd.weight is missing"},
		"output_norm.weight":         {half, "tensor output_norm.weight has type F16, expected F32"},
		"output.weight":              {shape{tensor.F32, []uint64{16, 261}}, "tensor output.weight has dimensions [16 261], expected [16 262]"},
		"blk.1.ffn_gate_inp.weight":  {shape{}, "tensor blk.1.ffn_gate_inp.weight is missing"},
		"blk.0.attn_q.weight":        {shape{6, []uint64{32, 8}}, `tensor "blk.0.attn_q.weight" has type Q5_0, which the native engine cannot compute`},
		"blk.0.attn_k.weight":        {shape{900, []uint64{16, 8}}, `tensor "blk.0.attn_k.weight" has type type 900`},
		"blk.0.attn_v.weight":        {shape{tensor.F32, []uint64{128}}, "tensor blk.0.attn_v.weight has dimensions [128], expected [16 8]"},
		"blk.1.ffn_down_exps.weight": {shape{tensor.F32, []uint64{8, 16, 5}}, "tensor blk.1.ffn_down_exps.weight has dimensions [8 16 5], expected [8 16 6]"},
		"blk.0.attn_sinks.weight":    {shape{tensor.F32, []uint64{4}}, `tensor "blk.0.attn_sinks.weight" is not used by the native engine for architecture llama`},
		"blk.0.attn\nsinks.weight":   {shape{tensor.F32, []uint64{4}}, `tensor "blk.0.attn\nsinks.weight" is not used by the native engine`},
		"blk.0.ffn_gate.0.weight":    {shape{tensor.F32, []uint64{16, 8}}, "tensor blk.0.ffn_gate.0.weight: a file with one tensor for each expert"},
		"blk.0.attn_output.weight":   {shape{tensor.F32, []uint64{16, 16, 2}}, "tensor blk.0.attn_output.weight has dimensions [16 16 2]"},
	}
	for name, c := range tensors {
		p := tiny()
		p.tensors = map[string]shape{name: c.instead}
		refused(t, "bad.gguf", p.opener(t), "load model", c.want)
	}
}

func (p blueprint) opener(t *testing.T) func() (*native.Engine, error) {
	data := p.bytes(t)
	return func() (*native.Engine, error) { return native.OpenBytes("bad.gguf", data, native.Options{Threads: 1}) }
}

// TestTooLarge opens models that need more memory than the machine has, or than Options.Memory permits.
func TestTooLarge(t *testing.T) {
	data := tiny().bytes(t)
	for want, opt := range map[string]native.Options{
		"does not fit in memory: weights 6":   {Memory: 1 << 14, Threads: 1},
		"KV cache 4.40 TB for a context of 1": {Context: 1 << 24, Slots: 1 << 12, Threads: 1},
		"16777217 tokens of context: must be": {Context: 1<<24 + 1},
		"-1 tokens of context: must be 1 to":  {Context: -1},
		"-1 slots: must be 1 to":              {Slots: -1},
		"1025 threads: must be 1 to 1024":     {Threads: 1025},
		"-5 rows of a batch: must be":         {MaxBatch: -5},
	} {
		refused(t, "tiny.gguf", func() (*native.Engine, error) { return native.OpenBytes("tiny.gguf", data, opt) }, want)
	}
}
