package native_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/llmtop/llmtop/runtime/native/gguf"
	"github.com/llmtop/llmtop/runtime/native/tensor"
)

// blueprint is the shape of a small model of random weights.
type blueprint struct {
	architecture          string
	kind                  tensor.Type // of all matrices but the router
	layers, width         int
	heads, kvHeads, dim   int
	rotary                int // 0: all of a head
	feedForward, vocab    int
	experts, used         int
	tied, bias, ropeFreqs bool
	scaling               float32 // linear, of positions; 0: none
	omit                  string  // the tensor to leave out
}

// String names the blueprint as a test's name.
func (p blueprint) String() string {
	s := fmt.Sprintf("%s-%v-%dx%d", p.architecture, p.kind, p.layers, p.width)
	for _, part := range []struct {
		on   bool
		name string
	}{
		{p.experts > 0, "-experts"}, {p.tied, "-tied"}, {p.bias, "-bias"}, {p.ropeFreqs, "-freqs"},
		{p.scaling > 0, "-scaled"}, {p.rotary > 0, "-partial"},
	} {
		if part.on {
			s += part.name
		}
	}
	return s
}

// headNorm says whether the architecture normalises queries and keys; those that do also pair rotary values half a head apart.
func (p blueprint) headNorm() bool { return p.architecture != "llama" }

// rot is the number of values of a head that are rotated.
func (p blueprint) rot() int {
	if p.rotary > 0 {
		return p.rotary
	}
	return p.dim
}

// bytes is the model as a GGUF file, the same for the same blueprint.
func (p blueprint) bytes(tb testing.TB) []byte {
	tb.Helper()
	data, err := p.writer().Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func (p blueprint) writer() *gguf.Writer {
	w := gguf.NewWriter(3)
	p.metadata(w)
	writeVocabulary(w, p.vocab)
	s := &scribe{w: w, rng: rand.New(rand.NewPCG(1, 2)), omit: p.omit}
	s.matrix("token_embd.weight", p.kind, 0.5, p.width, p.vocab)
	gain := 6 / math.Sqrt(float64(p.width)) // makes logits deviate by 3
	if p.tied {
		s.vector("output_norm.weight", p.width, gain, gain/10)
	} else {
		s.vector("output_norm.weight", p.width, 1, 0.1)
		s.matrix("output.weight", p.kind, gain/2, p.width, p.vocab)
	}
	if p.ropeFreqs {
		s.vector("rope_freqs.weight", p.rot()/2, 2, 0.5)
	}
	for i := range p.layers {
		p.layer(s, i)
	}
	return w
}

func (p blueprint) metadata(w *gguf.Writer) {
	w.Set("general.architecture", p.architecture).Set("general.name", "random")
	set := func(key string, v any) { w.Set(p.architecture+"."+key, v) }
	set("block_count", uint32(p.layers))
	set("embedding_length", uint32(p.width))
	set("context_length", uint32(512))
	set("attention.head_count", uint32(p.heads))
	set("attention.head_count_kv", uint32(p.kvHeads))
	set("attention.key_length", uint32(p.dim))
	set("attention.value_length", uint32(p.dim))
	set("attention.layer_norm_rms_epsilon", float32(1e-6))
	set("rope.freq_base", float32(50000))
	set("rope.dimension_count", uint32(p.rot()))
	set("feed_forward_length", uint32(p.feedForward))
	if p.scaling > 0 {
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", p.scaling)
	}
	if p.experts > 0 {
		set("expert_count", uint32(p.experts))
		set("expert_used_count", uint32(p.used))
		if p.architecture != "llama" {
			set("expert_feed_forward_length", uint32(p.feedForward))
		}
	}
}

// writeVocabulary adds a SentencePiece vocabulary: three control tokens, the bytes, and made-up words.
func writeVocabulary(w *gguf.Writer, n int) {
	tokens, scores, kinds := []string{"<unk>", "<s>", "</s>"}, make([]float32, n), []int32{2, 3, 3}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	for i := len(tokens); i < n; i++ {
		tokens, kinds, scores[i] = append(tokens, fmt.Sprintf("▁w%d", i)), append(kinds, 1), float32(-i)
	}
	w.Set("tokenizer.ggml.model", "llama").Set("tokenizer.ggml.tokens", tokens[:n])
	w.Set("tokenizer.ggml.scores", scores).Set("tokenizer.ggml.token_type", kinds[:n])
	w.Set("tokenizer.ggml.bos_token_id", uint32(1)).Set("tokenizer.ggml.eos_token_id", uint32(2))
	w.Set("tokenizer.ggml.unknown_token_id", uint32(0))
}

func (p blueprint) layer(s *scribe, i int) {
	name := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
	scale, heads, kvHeads := 1/math.Sqrt(float64(p.width)), p.heads*p.dim, p.kvHeads*p.dim
	s.vector(name("attn_norm.weight"), p.width, 1, 0.1)
	s.vector(name("ffn_norm.weight"), p.width, 1, 0.1)
	if p.headNorm() {
		s.vector(name("attn_q_norm.weight"), p.dim, 1.2, 0.2)
		s.vector(name("attn_k_norm.weight"), p.dim, 1.2, 0.2)
	}
	s.matrix(name("attn_q.weight"), p.kind, scale, p.width, heads)
	s.matrix(name("attn_k.weight"), p.kind, scale, p.width, kvHeads)
	s.matrix(name("attn_v.weight"), p.kind, scale, p.width, kvHeads)
	s.matrix(name("attn_output.weight"), p.kind, scale/2, heads, p.width)
	if p.bias {
		s.vector(name("attn_q.bias"), heads, 0, 0.5)
		s.vector(name("attn_k.bias"), kvHeads, 0, 0.5)
		s.vector(name("attn_v.bias"), kvHeads, 0, 0.5)
	}
	suffix, stack := ".weight", []int{}
	if p.experts > 0 {
		suffix, stack = "_exps.weight", []int{p.experts}
		s.matrix(name("ffn_gate_inp.weight"), tensor.F32, 2*scale, p.width, p.experts)
	}
	s.matrix(name("ffn_gate"+suffix), p.kind, scale, append([]int{p.width, p.feedForward}, stack...)...)
	s.matrix(name("ffn_up"+suffix), p.kind, scale, append([]int{p.width, p.feedForward}, stack...)...)
	s.matrix(name("ffn_down"+suffix), p.kind, scale/2, append([]int{p.feedForward, p.width}, stack...)...)
}

// scribe writes random tensors.
type scribe struct {
	w    *gguf.Writer
	rng  *rand.Rand
	omit string
}

func (s *scribe) vector(name string, n int, mean, deviation float64) {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(mean + deviation*s.rng.NormFloat64())
	}
	if name != s.omit {
		s.w.AddF32(name, []uint64{uint64(n)}, values)
	}
}

// matrix adds weights of mean 0 and the given standard deviation.
func (s *scribe) matrix(name string, kind tensor.Type, deviation float64, dims ...int) {
	n, sizes := 1, []uint64{}
	for _, d := range dims {
		n, sizes = n*d, append(sizes, uint64(d))
	}
	var data []byte
	for range n / kind.BlockElems() {
		data = s.block(data, kind, deviation)
	}
	if name != s.omit {
		s.w.Add(name, kind, sizes, data)
	}
}

// block appends one block of a type. Quantised ones are random bytes under a scale that makes their values deviate as wanted; those
// with minima get one that centres them. The divisors are the standard deviations of values that such bytes stand for.
func (s *scribe) block(dst []byte, kind tensor.Type, deviation float64) []byte {
	half := func(v float64) { dst = binary.LittleEndian.AppendUint16(dst, tensor.FloatToHalf(float32(v))) }
	noise := func(n int) {
		for range n {
			dst = append(dst, byte(s.rng.Uint32()))
		}
	}
	switch v := deviation * s.rng.NormFloat64(); kind {
	case tensor.F32:
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	case tensor.F16:
		half(v)
	case tensor.BF16:
		dst = binary.LittleEndian.AppendUint16(dst, uint16(math.Float32bits(float32(v))>>16))
	case tensor.Q8_0:
		half(deviation / 74)
		noise(32)
	case tensor.Q4_0:
		half(deviation / 4.6)
		noise(16)
	case tensor.Q4_K:
		half(deviation / 258)
		half(deviation / 258 * 7.5)
		noise(12 + 128)
	case tensor.Q5_K:
		half(deviation / 530)
		half(deviation / 530 * 15.5)
		noise(12 + 32 + 128)
	case tensor.Q6_K:
		noise(128 + 64 + 16)
		half(deviation / 1366)
	}
	return dst
}
