package native_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// reference computes a model in float64, token by token, without rounded activations, batches or threads.
type reference struct {
	blueprint
	tb      testing.TB
	file    *gguf.File
	weights map[string][][]float64 // rows
	keys    [][][]float64          // [layer][position]
	values  [][][]float64
}

func newReference(tb testing.TB, p blueprint, data []byte) *reference {
	tb.Helper()
	f, err := gguf.Parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	return &reference{
		blueprint: p, tb: tb, file: f, weights: map[string][][]float64{},
		keys: make([][][]float64, p.layers), values: make([][][]float64, p.layers),
	}
}

// rows returns the values of a tensor, nil if the file does not have it.
func (r *reference) rows(format string, args ...any) [][]float64 {
	name := fmt.Sprintf(format, args...)
	if rows, ok := r.weights[name]; ok {
		return rows
	}
	t, ok := r.file.Tensor(name)
	if !ok {
		return nil
	}
	m := tensor.Matrix{Type: t.Type, Rows: int(t.Elements() / t.Dims[0]), Cols: int(t.Dims[0]), Data: r.file.Data(t)}
	rows, raw := make([][]float64, m.Rows), make([]float32, m.Cols)
	for i := range rows {
		m.Dequantize(raw, i)
		rows[i] = make([]float64, m.Cols)
		for j, v := range raw {
			rows[i][j] = float64(v)
		}
	}
	r.weights[name] = rows
	return rows
}

func times(rows [][]float64, x []float64) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		for j, v := range row {
			out[i] += v * x[j]
		}
	}
	return out
}

func plus(x, y []float64) []float64 {
	out := slices.Clone(x)
	for i := range y {
		out[i] += y[i]
	}
	return out
}

func normalised(x, weight []float64) []float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	scale, out := 1/math.Sqrt(sum/float64(len(x))+1e-6), make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * weight[i]
	}
	return out
}

func softmax(x []float64) []float64 {
	top, sum, out := slices.Max(x), 0.0, make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// forward computes the next token and returns its logits.
func (r *reference) forward(token int32) []float64 {
	x := slices.Clone(r.rows("token_embd.weight")[token])
	for i := range r.layers {
		x = plus(x, r.attend(i, normalised(x, r.rows("blk.%d.attn_norm.weight", i)[0])))
		in := normalised(x, r.rows("blk.%d.ffn_norm.weight", i)[0])
		if r.experts == 0 {
			x = plus(x, feed(in, r.rows("blk.%d.ffn_gate.weight", i), r.rows("blk.%d.ffn_up.weight", i), r.rows("blk.%d.ffn_down.weight", i)))
		} else {
			x = plus(x, r.mixture(i, in))
		}
	}
	head := r.rows("output.weight")
	if head == nil {
		head = r.rows("token_embd.weight")
	}
	return times(head, normalised(x, r.rows("output_norm.weight")[0]))
}

func feed(x []float64, gate, up, down [][]float64) []float64 {
	mid, other := times(gate, x), times(up, x)
	for i, g := range mid {
		mid[i] = g / (1 + math.Exp(-g)) * other[i]
	}
	return times(down, mid)
}

// mixture returns the output of the experts as in the Mixtral paper: softmax over the top logits.
func (r *reference) mixture(i int, x []float64) []float64 {
	scores := times(r.rows("blk.%d.ffn_gate_inp.weight", i), x)
	order := make([]int, len(scores))
	for e := range order {
		order[e] = e
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if scores[a] > scores[b] {
			return -1
		}
		return 1
	})
	var top []float64
	for _, e := range order[:r.used] {
		top = append(top, scores[e])
	}
	out := make([]float64, r.width)
	part := func(name string, e, n int) [][]float64 {
		return r.rows("blk.%d.ffn_%s_exps.weight", i, name)[e*n : (e+1)*n]
	}
	for rank, share := range softmax(top) {
		e := order[rank]
		for j, v := range feed(x, part("gate", e, r.feedForward), part("up", e, r.feedForward), part("down", e, r.width)) {
			out[j] += share * v
		}
	}
	return out
}

// attend computes the attention of the next token.
func (r *reference) attend(i int, x []float64) []float64 {
	pos, dim := len(r.keys[i]), r.dim
	project := func(name string) []float64 {
		out := times(r.rows("blk.%d.attn_%s.weight", i, name), x)
		if b := r.rows("blk.%d.attn_%s.bias", i, name); b != nil {
			out = plus(out, b[0])
		}
		for h := 0; h < len(out) && name != "v"; h += dim {
			if norm := r.rows("blk.%d.attn_%s_norm.weight", i, name); norm != nil {
				copy(out[h:], normalised(out[h:h+dim], norm[0]))
			}
			r.rotate(out[h:h+dim], pos)
		}
		return out
	}
	q := project("q")
	r.keys[i], r.values[i] = append(r.keys[i], project("k")), append(r.values[i], project("v"))
	mixed := make([]float64, r.heads*dim)
	for h := range r.heads {
		kv := h / (r.heads / r.kvHeads) * dim
		var scores []float64
		for _, key := range r.keys[i] {
			var dot float64
			for j := range dim {
				dot += q[h*dim+j] * key[kv+j]
			}
			scores = append(scores, dot/math.Sqrt(float64(dim)))
		}
		for p, share := range softmax(scores) {
			for j := range dim {
				mixed[h*dim+j] += share * r.values[i][p][kv+j]
			}
		}
	}
	return times(r.rows("blk.%d.attn_output.weight", i), mixed)
}

// rotate rotates pairs: neighbours, or values half a head apart, depending on the architecture.
func (r *reference) rotate(x []float64, pos int) {
	rot, at, factor := r.dim, float64(pos), cmp.Or(float64(r.attnFactor), 1)
	if r.scaling > 0 {
		at /= float64(r.scaling)
	}
	factors := r.rows("rope_freqs.weight")
	for i := range rot / 2 {
		angle := at * math.Pow(50000, -2*float64(i)/float64(rot))
		if factors != nil {
			angle /= factors[0][i]
		}
		a, b := 2*i, 2*i+1
		if r.headNorm() {
			a, b = i, i+rot/2
		}
		sin, cos := math.Sincos(angle)
		x[a], x[b] = factor*(x[a]*cos-x[b]*sin), factor*(x[a]*sin+x[b]*cos)
	}
}
