package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// history is a cache with random keys and values, with a copy in float64.
type history struct {
	kv           *KV
	keys, values [][]float32
}

func newHistory(r *rand.Rand, dim, n int) *history {
	h := &history{kv: NewKV(dim, n)}
	for pos := range n {
		k, v := randomVector(r, dim), randomVector(r, dim)
		h.kv.Store(pos, k, v)
		for i := range k {
			k[i], v[i] = HalfToFloat(FloatToHalf(k[i])), HalfToFloat(FloatToHalf(v[i]))
		}
		h.keys, h.values = append(h.keys, k), append(h.values, v)
	}
	return h
}

// attend computes one query's attention to the first n positions in float64.
func (h *history) attend(q []float32, n int, scale float64) []float64 {
	weights, top, sum := make([]float64, n), math.Inf(-1), 0.0
	for p := range n {
		for i, x := range q {
			weights[p] += float64(x) * float64(h.keys[p][i]) * scale
		}
		top = max(top, weights[p])
	}
	out := make([]float64, len(q))
	for p := range n {
		w := math.Exp(weights[p] - top)
		sum += w
		for i, v := range h.values[p] {
			out[i] += w * float64(v)
		}
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func TestAttendAgainstFloat64(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, dim := range []int{32, 64, 80, 128, 40} {
			h := newHistory(r, dim, 150)
			for _, c := range []struct{ group, tokens, pos0 int }{{1, 1, 0}, {3, 1, 149}, {3, 20, 0}, {2, 5, 100}, {5, 3, 63}, {8, 4, 15}} {
				heads := c.group + 1 // one more head, which must not be written
				q, scale := randomVector(r, c.tokens*heads*dim), float32(1/math.Sqrt(float64(dim)))
				dst := make([]float32, len(q))
				Attend(dst, heads*dim, q, heads*dim, c.group, c.tokens, c.pos0, h.kv, scale, &AttnScratch{})
				for i := range c.tokens * heads {
					token, head := i/heads, i%heads
					want := make([]float64, dim)
					if head < c.group {
						want = h.attend(q[i*dim:(i+1)*dim], c.pos0+token+1, float64(scale))
					}
					near(t, fmt.Sprintf("dim %d, %+v, token %d, head %d", dim, c, token, head), dst[i*dim:(i+1)*dim], want, 2e-6)
				}
			}
		}
	})
}

// The attention of a token has the same bits alone and in a prompt, and does not depend on later positions in the
// cache.
func TestAttendIsReproducible(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		const dim, n = 32, 90
		r := rand.New(rand.NewPCG(2, 2))
		h := newHistory(r, dim, n)
		for _, group := range []int{1, 2, 3, 4, 6} {
			width := group * dim
			q, all, s := randomVector(r, n*width), make([]float32, n*width), &AttnScratch{}
			Attend(all, width, q, width, group, n, 0, h.kv, 0.2, s)
			for _, chunk := range []int{1, 7, 32} {
				parts := make([]float32, n*width)
				for p := 0; p < n; p += chunk {
					Attend(parts[p*width:], width, q[p*width:], width, group, min(chunk, n-p), p, h.kv, 0.2, s)
				}
				for i := range all {
					if all[i] != parts[i] {
						t.Fatalf("group %d, chunks of %d: token %d is %g, alone %g", group, chunk, i/width, all[i], parts[i])
					}
				}
			}
		}
	})
}

func TestKV(t *testing.T) {
	const dim = 32
	r := rand.New(rand.NewPCG(3, 3))
	h := newHistory(r, dim, 37)
	if got := h.kv.Positions(); got != 37 {
		t.Errorf("capacity of %d positions, want 37", got)
	}
	if got, want := KVBytes(dim, 37), 2*dim*(48+37); got != want {
		t.Errorf("KVBytes is %d, want %d", got, want)
	}
	q, a := randomVector(r, dim), make([]float32, dim)
	for _, pos := range []int{-1, 37} {
		for _, use := range []func(){
			func() { h.kv.Store(pos, q, q) },
			func() { Attend(a, dim, q, dim, 1, 1, pos, h.kv, 1, &AttnScratch{}) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("position %d was used", pos)
					}
				}()
				use()
			}()
		}
	}
}

func TestAttendDoesNotAllocate(t *testing.T) {
	const dim = 32
	r := rand.New(rand.NewPCG(4, 4))
	h, q, dst, s := newHistory(r, dim, 64), randomVector(r, 3*dim), make([]float32, 3*dim), &AttnScratch{}
	Attend(dst, 3*dim, q, 3*dim, 3, 1, 63, h.kv, 1, s)
	if n := testing.AllocsPerRun(20, func() {
		h.kv.Store(63, q[:dim], q[dim:2*dim])
		Attend(dst, 3*dim, q, 3*dim, 3, 1, 63, h.kv, 1, s)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkAttend measures one KV head of the built-in model: a decoded token, and a prompt of 256.
func BenchmarkAttend(b *testing.B) {
	for _, c := range []struct{ tokens, pos0 int }{{1, 63}, {1, 511}, {256, 0}} {
		b.Run(fmt.Sprintf("%d@%d", c.tokens, c.pos0), func(b *testing.B) {
			levels(b, func(b *testing.B) {
				const dim, group = 32, 3
				r := rand.New(rand.NewPCG(5, 5))
				h, q, s := newHistory(r, dim, 512), randomVector(r, 256*group*dim), &AttnScratch{}
				dst := make([]float32, len(q))
				for b.Loop() {
					Attend(dst, group*dim, q, group*dim, group, c.tokens, c.pos0, h.kv, 1, s)
				}
			})
		})
	}
}

func BenchmarkVectors(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 6))
	x, y, w := randomVector(r, 192), randomVector(r, 192), randomVector(r, 192)
	a := &Activations{}
	a.Resize(1, 192, FormQ80)
	for name, f := range map[string]func(){
		"RMSNorm":  func() { RMSNorm(y, x, w, 1e-6) },
		"Quantize": func() { a.Quantize(0, x, FormQ80) },
		"SwiGLU":   func() { SwiGLU(y, x, w) },
		"Softmax":  func() { Softmax(y, 1) },
		"Axpy":     func() { Axpy(y, 0.001, x) },
	} {
		b.Run(name, func(b *testing.B) {
			levels(b, func(b *testing.B) {
				for b.Loop() {
					f()
				}
			})
		})
	}
}
