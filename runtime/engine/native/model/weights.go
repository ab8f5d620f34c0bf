package model

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// layer holds the weights of one layer. Matrices are used in place in the file.
type layer struct {
	attnNorm, ffnNorm []float32
	qNorm, kNorm      []float32 // per head; nil if the model has none
	q, k, v, o        tensor.Matrix
	bq, bk, bv        []float32 // nil if the model has none
	router            tensor.Matrix
	gate, up, down    tensor.Matrix // all experts stacked; a dense layer has one
	attnForm          tensor.Form
	inForm            tensor.Form // of the input of router and feed-forward network
	outForm, downForm tensor.Form
}

// loader looks up tensors and checks their shapes; it keeps the first error.
type loader struct {
	f    *gguf.File
	used map[string]bool // names of tensors in use
	err  error
}

// find returns a tensor of the given dimensions (columns first); nil if it is optional and missing.
func (l *loader) find(name string, optional bool, dims ...int) *gguf.Tensor {
	t, ok := l.f.Tensor(name)
	if !ok {
		if !optional && l.err == nil {
			l.err = fmt.Errorf("tensor %s is missing", name)
		}
		return nil
	}
	l.used[name] = true
	elements := uint64(1)
	for i, d := range dims {
		elements *= uint64(d)
		if i < len(t.Dims) && t.Dims[i] != uint64(d) && l.err == nil {
			l.err = fmt.Errorf("tensor %s has dimensions %v, expected %v", name, t.Dims, dims)
		}
	}
	if t.Elements() != elements && l.err == nil {
		l.err = fmt.Errorf("tensor %s has dimensions %v, expected %v", name, t.Dims, dims)
	}
	if l.err != nil {
		return nil
	}
	return &t
}

// matrix returns a weight matrix of rows x cols; stack matrices are stored one after another as one.
func (l *loader) matrix(name string, cols, rows, stack int) (m tensor.Matrix) {
	dims := []int{cols, rows}
	if stack > 1 {
		dims = append(dims, stack)
	}
	t := l.find(name, false, dims...)
	if t == nil {
		return m
	}
	m = tensor.Matrix{Type: t.Type, Rows: rows * stack, Cols: cols, Data: l.f.Data(*t)}
	if err := m.Validate(); err != nil {
		l.err = fmt.Errorf("tensor %s: %w", name, err)
	}
	return m
}

// vector returns a copy of a small float32 tensor, since data in the file may be unaligned; nil if it is optional and
// missing.
func (l *loader) vector(name string, n int, optional bool) []float32 {
	t := l.find(name, optional, n)
	if t == nil {
		return nil
	}
	if t.Type != tensor.F32 {
		l.err = fmt.Errorf("tensor %s has type %v, expected F32", name, t.Type)
		return nil
	}
	raw, out := l.f.Data(*t), make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// layer loads layer i.
func (l *loader) layer(c *Config, i int) (w layer) {
	name := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
	heads, kvHeads := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	w.attnNorm = l.vector(name("attn_norm.weight"), c.Width, false)
	w.ffnNorm = l.vector(name("ffn_norm.weight"), c.Width, false)
	if c.kind.headNorm {
		w.qNorm = l.vector(name("attn_q_norm.weight"), c.HeadDim, false)
		w.kNorm = l.vector(name("attn_k_norm.weight"), c.HeadDim, false)
	}
	w.q = l.matrix(name("attn_q.weight"), c.Width, heads, 1)
	w.k = l.matrix(name("attn_k.weight"), c.Width, kvHeads, 1)
	w.v = l.matrix(name("attn_v.weight"), c.Width, kvHeads, 1)
	w.o = l.matrix(name("attn_output.weight"), heads, c.Width, 1)
	w.bq = l.vector(name("attn_q.bias"), heads, true)
	w.bk = l.vector(name("attn_k.bias"), kvHeads, true)
	w.bv = l.vector(name("attn_v.bias"), kvHeads, true)
	suffix, stack := ".weight", 1
	if !c.Dense() {
		suffix, stack = "_exps.weight", c.Experts
		if _, old := l.f.Tensor(name("ffn_gate.0.weight")); old && l.err == nil {
			l.err = fmt.Errorf("tensor %s: a file with one tensor for each expert is of an old form; convert the model again", name("ffn_gate.0.weight"))
		}
		w.router = l.matrix(name("ffn_gate_inp.weight"), c.Width, c.Experts, 1)
		w.inForm = w.router.Type.Form()
	}
	w.gate = l.matrix(name("ffn_gate"+suffix), c.Width, c.FeedForward, stack)
	w.up = l.matrix(name("ffn_up"+suffix), c.Width, c.FeedForward, stack)
	w.down = l.matrix(name("ffn_down"+suffix), c.FeedForward, c.Width, stack)
	w.attnForm = w.q.Type.Form() | w.k.Type.Form() | w.v.Type.Form()
	w.outForm, w.downForm = w.o.Type.Form(), w.down.Type.Form()
	w.inForm |= w.gate.Type.Form() | w.up.Type.Form()
	return w
}

// Weights holds the tensors of a model, used in place.
type Weights struct {
	Config
	embed   tensor.Matrix
	head    tensor.Matrix // LM head; the embedding matrix if they are tied
	outNorm []float32
	layers  []layer

	inForms, headForms, midForms tensor.Form // of the inputs of all products: of a lane's in, heads and mid

	rope []float32 // divisors of the rotary frequencies; nil if the model has none
}

// Load looks up the weights of the model in f, which must stay open while they are used. The error names the tensor
// that is missing, has an unexpected shape, or has an unsupported type.
func Load(f *gguf.File) (*Weights, error) {
	c, err := ReadConfig(f)
	if err != nil {
		return nil, err
	}
	if err := f.CheckTypes(); err != nil {
		return nil, err
	}
	embed, ok := f.Tensor("token_embd.weight")
	if !ok || len(embed.Dims) < 2 || embed.Dims[1] < 1 || embed.Dims[1] > maxVocab {
		return nil, fmt.Errorf("tensor token_embd.weight is missing or has no rows")
	}
	c.Vocab = int(embed.Dims[1])
	w := &Weights{Config: c, layers: make([]layer, c.Layers)}
	l := &loader{f: f, used: map[string]bool{}}
	w.embed = l.matrix("token_embd.weight", c.Width, c.Vocab, 1)
	w.head = w.embed
	if _, untied := f.Tensor("output.weight"); untied {
		w.head = l.matrix("output.weight", c.Width, c.Vocab, 1)
	}
	w.inForms = w.head.Type.Form()
	w.outNorm = l.vector("output_norm.weight", c.Width, false)
	if c.kind.ropeFreqs {
		w.rope = l.vector("rope_freqs.weight", c.HeadDim/2, true)
	}
	for i := range w.layers {
		if w.layers[i] = l.layer(&c, i); l.err != nil {
			break
		}
		p := &w.layers[i]
		w.inForms |= p.attnForm | p.inForm
		w.headForms |= p.outForm
		w.midForms |= p.downForm
	}
	l.finish(&c)
	return w, l.err
}

// finish rejects a file with unused tensors: the computation would not be that of the model.
func (l *loader) finish(c *Config) {
	for _, t := range l.f.Tensors {
		if !l.used[t.Name] && l.err == nil {
			l.err = fmt.Errorf("tensor %s is not used by the native engine for architecture %s", clean.Quote(t.Name), c.Architecture)
		}
	}
}
