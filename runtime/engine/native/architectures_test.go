package native_test

import (
	"math"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// shapes returns one model of each supported architecture. Row lengths are multiples of every block size.
func shapes(kind tensor.Type) []blueprint {
	base := blueprint{
		architecture: "llama", kind: kind, layers: 2, width: 256, heads: 4, kvHeads: 2, dim: 64, feedForward: 256, vocab: 500,
	}
	tied, biased, scaled, mixtral := base, base, base, base
	tied.tied = true
	biased.bias, biased.kvHeads = true, 1
	scaled.ropeFreqs, scaled.scaling, scaled.attnFactor = true, 4, 1.3
	mixtral.experts, mixtral.used = 6, 2
	qwen3, qwen3moe := base, base
	qwen3.architecture, qwen3.tied, qwen3.dim = "qwen3", true, 128
	qwen3moe.architecture, qwen3moe.experts, qwen3moe.used, qwen3moe.kvHeads = "qwen3moe", 8, 3, 4
	return []blueprint{base, tied, biased, scaled, mixtral, qwen3, qwen3moe}
}

// oddShapes have sizes that are not multiples of any block size, which only unquantised types allow.
func oddShapes(kind tensor.Type) []blueprint {
	odd := blueprint{
		architecture: "llama", kind: kind, layers: 1, width: 50, heads: 6, kvHeads: 3, dim: 22, feedForward: 37, vocab: 301,
	}
	experts := odd
	experts.architecture, experts.experts, experts.used = "qwen3moe", 5, 5
	return []blueprint{odd, experts}
}

// types are all supported matrix types.
var types = []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K}

// open opens a model created from a blueprint.
func (p blueprint) open(tb testing.TB, opt native.Options) *native.Engine {
	tb.Helper()
	e, err := native.OpenBytes(p.String()+".gguf", p.bytes(tb), opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	e.SetHooks(engine.Hooks{Picks: true})
	return e
}

// TestAgreesWithReference compares the engine with a float64 computation of the same weights. With unquantised weights
// the only difference is the KV cache in 16-bit floats; otherwise also activations rounded to 8 bits.
func TestAgreesWithReference(t *testing.T) {
	cases := append(shapes(tensor.F32), oddShapes(tensor.F32)...)
	for _, kind := range types[1:] {
		cases = append(cases, shapes(kind)[4])
	}
	for _, p := range cases {
		t.Run(p.String(), func(t *testing.T) {
			limit := 0.2
			if p.kind.Form() == tensor.FormF32 {
				limit = 0.002
			}
			tokens, ref := text(7, 16, p.vocab), newReference(t, p, p.bytes(t))
			var a agreement
			compute(t, p.open(t, native.Options{Context: 64, Threads: 2}), tokens, len(tokens), func(pos int, logits []float32, _ []uint16) {
				a.add(logProbs(logits), logsOf(softmax(ref.forward(tokens[pos]))))
			})
			a.check(t, limit, 0.87)
		})
	}
}

func logsOf(x []float64) []float64 {
	for i, v := range x {
		x[i] = math.Log(v)
	}
	return x
}

// agreement accumulates the differences of log-probabilities of two computations.
type agreement struct {
	off              float64
	terms, top, same int
}

func (a *agreement) add(got, want []float64) {
	best, other := 0, 0
	for i, v := range got {
		a.off += math.Abs(v - want[i])
		if v > got[best] {
			best = i
		}
		if want[i] > want[other] {
			other = i
		}
	}
	a.terms += len(got)
	a.top++
	if best == other {
		a.same++
	}
}

// join adds the sums of b.
func (a *agreement) join(b agreement) {
	a.off, a.terms, a.top, a.same = a.off+b.off, a.terms+b.terms, a.top+b.top, a.same+b.same
}

// check requires a mean difference below limit, and the same likeliest token at the given fraction of positions.
func (a *agreement) check(t *testing.T, limit, share float64) {
	t.Helper()
	mean := a.off / float64(a.terms)
	t.Logf("mean |Δ log p| %.5f, top-1 equal at %d of %d positions", mean, a.same, a.top)
	if !(mean < limit) {
		t.Errorf("mean |Δ log p| is %.5f, must be below %g", mean, limit)
	}
	if float64(a.same) < share*float64(a.top) {
		t.Errorf("top-1 is equal at %d of %d positions, must be at %g %%", a.same, a.top, 100*share)
	}
}

// TestReproducibleOtherShapes is TestReproducible for dense models, other forms of activations, and odd sizes.
func TestReproducibleOtherShapes(t *testing.T) {
	for _, p := range append(oddShapes(tensor.F32), shapes(tensor.Q4_K)[4], shapes(tensor.F16)[2], shapes(tensor.Q8_0)[5]) {
		t.Run(p.String(), func(t *testing.T) { sameBits(t, p.open, p.vocab) })
	}
}
