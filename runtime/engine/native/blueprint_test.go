package native_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// blueprint is the shape of a small model with random weights.
type blueprint struct {
	architecture          string
	kind                  tensor.Type // of all matrices except the router
	better                tensor.Type // of the matrices that Q4_K_M stores in more bits; 0: kind
	layers, width         int
	heads, kvHeads, dim   int
	feedForward, vocab    int
	experts, used         int
	shared                int // width of the shared expert that all tokens use; 0: none
	tied, bias, ropeFreqs bool
	scaling               float32 // linear scaling of positions; 0: none
	attnFactor            float32 // of rotated queries and keys; 0: 1
	context               int     // context in training; 0: 512

	// Values that a damaged file has instead of, or in addition to, the valid ones.
	set     map[string]any   // metadata by key; nil: missing
	tensors map[string]shape // by name; zero: missing
}

// shape describes a tensor of zeros.
type shape struct {
	kind tensor.Type
	dims []uint64
}

// String returns a name for tests.
func (p blueprint) String() string {
	s := fmt.Sprintf("%s-%v-%dx%d", p.architecture, p.kind, p.layers, p.width)
	for _, part := range []struct {
		on   bool
		name string
	}{
		{p.experts > 0, "-experts"},
		{p.tied, "-tied"},
		{p.bias, "-bias"},
		{p.ropeFreqs, "-freqs"},
		{p.scaling > 0, "-scaled"},
	} {
		if part.on {
			s += part.name
		}
	}
	return s
}

// headNorm reports whether the architecture normalises queries and keys; those architectures also use NEOX rotary pairs
// (half a head apart).
func (p blueprint) headNorm() bool { return strings.HasPrefix(p.architecture, "qwen3") }

// bytes returns the model as a GGUF file. The same blueprint always gives the same file.
func (p blueprint) bytes(tb testing.TB) []byte {
	tb.Helper()
	data, err := p.writer().Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func (p blueprint) writer() *gguf.Writer {
	s := &scribe{w: gguf.NewWriter(3), rng: rand.New(rand.NewPCG(1, 2)), odd: maps.Clone(p.set), oddTensors: maps.Clone(p.tensors)}
	p.metadata(s)
	s.vocabulary(p.vocab)
	s.matrix("token_embd.weight", p.kind, 0.5, p.width, p.vocab)
	gain := 6 / math.Sqrt(float64(p.width)) // logits get a standard deviation of 3
	if p.tied {
		s.vector("output_norm.weight", p.width, gain, gain/10)
	} else {
		s.vector("output_norm.weight", p.width, 1, 0.1)
		s.matrix("output.weight", cmp.Or(p.better, p.kind), gain/2, p.width, p.vocab)
	}
	if p.ropeFreqs {
		s.vector("rope_freqs.weight", p.dim/2, 2, 0.5)
	}
	for i := range p.layers {
		p.layer(s, i)
	}
	for key, v := range s.odd {
		s.w.Set(key, v)
	}
	for name := range s.oddTensors {
		s.add(name, 0, nil, nil)
	}
	return s.w
}

func (p blueprint) metadata(s *scribe) {
	s.set("general.architecture", p.architecture)
	s.set("general.name", "random")
	set := func(key string, v any) { s.set(p.architecture+"."+key, v) }
	set("block_count", uint32(p.layers))
	set("embedding_length", uint32(p.width))
	set("context_length", uint32(cmp.Or(p.context, 512)))
	set("attention.head_count", uint32(p.heads))
	set("attention.head_count_kv", uint32(p.kvHeads))
	set("attention.key_length", uint32(p.dim))
	set("attention.value_length", uint32(p.dim))
	set("attention.layer_norm_rms_epsilon", float32(1e-6))
	set("rope.freq_base", float32(50000))
	set("rope.dimension_count", uint32(p.dim))
	set("feed_forward_length", uint32(p.feedForward))
	if p.scaling > 0 {
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", p.scaling)
	}
	if p.attnFactor > 0 {
		set("rope.scaling.attn_factor", p.attnFactor)
	}
	if p.experts > 0 {
		set("expert_count", uint32(p.experts))
		set("expert_used_count", uint32(p.used))
		if p.architecture != "llama" {
			set("expert_feed_forward_length", uint32(p.feedForward))
		}
		if p.shared > 0 {
			set("expert_shared_feed_forward_length", uint32(p.shared))
		}
	}
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
	better := p.kind
	if i%2 == 0 {
		better = cmp.Or(p.better, p.kind)
	}
	s.matrix(name("attn_v.weight"), better, scale, p.width, kvHeads)
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
	s.matrix(name("ffn_down"+suffix), better, scale/2, append([]int{p.feedForward, p.width}, stack...)...)
	if p.shared > 0 {
		s.vector(name("ffn_gate_inp_shexp.weight"), p.width, 0, scale)
		s.matrix(name("ffn_gate_shexp.weight"), p.kind, scale, p.width, p.shared)
		s.matrix(name("ffn_up_shexp.weight"), p.kind, scale, p.width, p.shared)
		s.matrix(name("ffn_down_shexp.weight"), p.kind, scale/2, p.shared, p.width)
	}
}

// scribe writes random tensors.
type scribe struct {
	w          *gguf.Writer
	rng        *rand.Rand
	odd        map[string]any // entries of blueprint.set and blueprint.tensors not written yet
	oddTensors map[string]shape
}

// set adds a metadata pair.
func (s *scribe) set(key string, v any) {
	if other, damaged := s.odd[key]; damaged {
		v = other
		delete(s.odd, key)
	}
	if v != nil {
		s.w.Set(key, v)
	}
}

// add adds a tensor.
func (s *scribe) add(name string, kind tensor.Type, dims []uint64, data []byte) {
	if other, damaged := s.oddTensors[name]; damaged {
		kind, dims, data = other.kind, other.dims, make([]byte, other.bytes())
		delete(s.oddTensors, name)
	}
	if dims != nil {
		s.w.Add(name, kind, dims, data)
	}
}

// bytes returns the stored size of the tensor.
func (s shape) bytes() int {
	n := 1
	for _, d := range s.dims {
		n *= int(d)
	}
	if !s.kind.Supported() {
		return n / 32 * 22 // as Q5_0, which has no kernels
	}
	return n / s.kind.BlockElems() * s.kind.BlockBytes()
}

// vocabulary adds a SentencePiece vocabulary: three control tokens, the bytes, and generated words.
func (s *scribe) vocabulary(n int) {
	tokens, scores, kinds := []string{"<unk>", "<s>", "</s>"}, make([]float32, n), []int32{2, 3, 3}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	for i := len(tokens); i < n; i++ {
		tokens, kinds, scores[i] = append(tokens, fmt.Sprintf("▁w%d", i)), append(kinds, 1), float32(-i)
	}
	s.set("tokenizer.ggml.model", "llama")
	s.set("tokenizer.ggml.tokens", tokens[:n])
	s.set("tokenizer.ggml.scores", scores)
	s.set("tokenizer.ggml.token_type", kinds[:n])
	s.set("tokenizer.ggml.bos_token_id", uint32(1))
	s.set("tokenizer.ggml.eos_token_id", uint32(2))
	s.set("tokenizer.ggml.unknown_token_id", uint32(0))
}

func (s *scribe) vector(name string, n int, mean, deviation float64) {
	var data []byte
	for range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(mean+deviation*s.rng.NormFloat64())))
	}
	s.add(name, tensor.F32, []uint64{uint64(n)}, data)
}

// maxRandom is the number of bytes after which the weights of a matrix repeat.
const maxRandom = 1 << 20

// matrix adds weights of mean 0 and the given standard deviation.
func (s *scribe) matrix(name string, kind tensor.Type, deviation float64, dims ...int) {
	n, sizes := 1, []uint64{}
	for _, d := range dims {
		n, sizes = n*d, append(sizes, uint64(d))
	}
	data := make([]byte, 0, n/kind.BlockElems()*kind.BlockBytes())
	for len(data) < min(cap(data), maxRandom) {
		data = s.block(data, kind, deviation)
	}
	for len(data) < cap(data) { // whole blocks, because the sizes of all parts are multiples of a block
		data = append(data, data[:min(len(data), cap(data)-len(data))]...)
	}
	s.add(name, kind, sizes, data)
}

// block appends one block of a type. Quantised blocks are random bytes with a scale that gives their values the wanted
// standard deviation; types with minima get one that centres them. The divisors are the standard deviations of the
// values that random bytes encode.
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
