package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// lengths include every remainder that the kernels handle separately.
var lengths = []int{1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 192, 200, 1000}

// near fails if got differs from want by more than tol, relative to the largest value.
func near(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	size := 1e-30
	for _, w := range want {
		size = max(size, math.Abs(w))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tol*size) {
			t.Fatalf("%s: value %d of %d is %g, want %g", what, i, len(want), got[i], w)
		}
	}
}

// guarded returns n values followed by sentinels; check fails if a kernel overwrote them.
func guarded(r *rand.Rand, n int) (x []float32, check func(t *testing.T)) {
	all := append(randomVector(r, n), make([]float32, 32)...)
	for i := range 32 {
		all[n+i] = 12345
	}
	return all[:n:n], func(t *testing.T) {
		t.Helper()
		for i, v := range all[n:] {
			if v != 12345 {
				t.Fatalf("length %d: wrote %d values beyond the end", n, i+1)
			}
		}
	}
}

func each(x []float32, f func(i int, v float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(i, float64(v))
	}
	return out
}

func TestVectorHelpers(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 9))
		for _, n := range lengths {
			y, check := guarded(r, n)
			x, w := randomVector(r, n), randomVector(r, n)
			sum := 0.0
			for i := range x {
				sum += float64(x[i]) * float64(y[i])
			}
			near(t, "Dot", []float32{sets[active].dot(x, y) / float32(n)}, []float64{sum / float64(n)}, 2e-5)

			want := each(x, func(i int, v float64) float64 { return float64(y[i]) + v })
			AddTo(y, x)
			near(t, "AddTo", y, want, 1e-6)
			want = each(x, func(i int, v float64) float64 { return float64(y[i]) - 1.5*v })
			Axpy(y, -1.5, x)
			near(t, "Axpy", y, want, 1e-6)

			square := 0.0
			for _, v := range x {
				square += float64(v) * float64(v)
			}
			rms := 1 / math.Sqrt(square/float64(n)+1e-6)
			RMSNorm(y, x, w, 1e-6)
			near(t, "RMSNorm", y, each(x, func(i int, v float64) float64 { return v * rms * float64(w[i]) }), 1e-6)

			SwiGLU(y, x, w)
			near(t, "SwiGLU", y, each(x, func(i int, v float64) float64 { return v / (1 + math.Exp(-v)) * float64(w[i]) }), 1e-6)

			copy(y, x)
			top, total := math.Inf(-1), 0.0
			for _, v := range x {
				top = max(top, float64(v)*3)
			}
			for _, v := range x {
				total += math.Exp(float64(v)*3 - top)
			}
			Softmax(y, 3)
			near(t, "Softmax", y, each(x, func(_ int, v float64) float64 { return math.Exp(float64(v)*3-top) / total }), 2e-6)
			check(t)
		}
	})
}

// Sizes at which exp and its sums reach the limits of float32.
func TestSoftmaxExtremes(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		inf := float32(math.Inf(-1))
		x := []float32{inf, 0, -1000, inf, 0, -200}
		Softmax(x, 1)
		near(t, "Softmax", x, []float64{0, 0.5, 0, 0, 0.5, 0}, 1e-6)
		y := []float32{1e30, -1e30, 1e30}
		Softmax(y, 1)
		near(t, "Softmax", y, []float64{0.5, 0, 0.5}, 1e-6)
		z := []float32{0, -88, -95, -103, -110} // subnormal exponentials, or nearly
		sets[active].expSum(z, 1)
		for i, v := range z[1:] {
			if v != 0 {
				t.Errorf("exponential %d is %g, a subnormal number", i+1, v)
			}
		}
		g, up := []float32{-1e4, 1e4, 0, -80}, []float32{1, 1, 1, 1}
		SwiGLU(g, g, up)
		near(t, "SwiGLU", g, []float64{0, 1e4, 0, 0}, 1e-6)
	})
}

// The error of the exponential, in units in the last place, over the used range.
func TestExpAccuracy(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		const n = 4096
		gate, up := make([]float32, n), make([]float32, n)
		for i := range gate {
			gate[i], up[i] = -87+174*float32(i)/n, 1
			if active == portable {
				want := math.Exp(float64(gate[i]))
				if e := math.Abs(float64(Exp(gate[i]))/want - 1); e > 2*math.Pow(2, -23) {
					t.Fatalf("exp(%g) has a relative error of %g", gate[i], e)
				}
			}
		}
		got := make([]float32, n)
		SwiGLU(got, gate, up)
		for i, g := range gate {
			want := float64(g) / (1 + math.Exp(-float64(g)))
			if e := math.Abs(float64(got[i])/want - 1); g != 0 && e > 4*math.Pow(2, -23) {
				t.Fatalf("silu(%g) has a relative error of %g", g, e)
			}
		}
	})
}

func TestRotary(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		const dim, pos = 48, 7
		rot := NewRotary(32, 16, 10000, 2, nil)
		x := randomVector(rand.New(rand.NewPCG(2, 2)), dim)
		neox, norm := each(x, func(_ int, v float64) float64 { return v }), each(x, func(_ int, v float64) float64 { return v })
		turn := func(y []float64, i, j, k int) {
			s, c := math.Sincos(pos / 2.0 * math.Pow(10000, -2*float64(k)/32))
			y[i], y[j] = y[i]*c-y[j]*s, y[i]*s+y[j]*c
		}
		for k := range 16 {
			turn(neox, k, k+16, k)
			turn(norm, 2*k, 2*k+1, k)
		}
		y := append([]float32(nil), x...)
		rot.Neox(y, pos)
		near(t, "Neox", y, neox, 1e-6)
		y = append(y[:0], x...)
		rot.Norm(y, pos)
		near(t, "Norm", y, norm, 1e-6)
	})
}

// Every half float survives a round trip, and the assembly rounds like the portable code.
func TestHalves(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		all := make([]uint16, 1<<16)
		for i := range all {
			all[i] = uint16(i)
		}
		floats, back := make([]float32, len(all)), make([]uint16, len(all))
		halvesToFloatsGo(floats, all)
		sets[active].floatsToHalves(back, floats)
		for i, h := range all {
			nan := h&0x7c00 == 0x7c00 && h&0x3ff != 0
			if nan != math.IsNaN(float64(floats[i])) || !nan && back[i] != h {
				t.Fatalf("half %#04x is %g, and back %#04x", h, floats[i], back[i])
			}
		}
		r := rand.New(rand.NewPCG(3, 3))
		x := make([]float32, 5003)
		for i := range x {
			x[i] = math.Float32frombits(0x32000000 + r.Uint32()%0x16000000) // 1e-8 .. 1e5
		}
		copy(x, []float32{65519.99, 65520, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-14, 0x1.ffcp-15, 0x1.ffep-15, 2049, 2051})
		got := make([]uint16, len(x))
		sets[active].floatsToHalves(got, x)
		for i, v := range x {
			if h := FloatToHalf(v); got[i] != h || math.Abs(float64(HalfToFloat(h)-v)) > max(float64(v)/2048, 0x1p-25) && v < 65520 {
				t.Fatalf("%g becomes %#04x, and %#04x in portable code", v, got[i], h)
			}
		}
	})
}

// Quantised activations have the same bits with every set of kernels.
func TestQuantizeAgrees(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 4))
		x := randomVector(r, 1024)
		clear(x[32:64])
		clear(x[256:512])
		for i := 512; i < 544; i++ {
			x[i] = 3
		}
		for i := 544; i < 768; i++ {
			x[i] *= 1e-2
		}
		x[800], x[801] = 1e4, -1e4
		want, got := make([]actBlock, 32), make([]actBlock, 32)
		quantizeQ80Go(want, x)
		sets[active].quantizeQ80(got, x)
		for b := range want {
			if got[b] != want[b] {
				t.Fatalf("block %d:\ngot  %v\nwant %v", b, got[b], want[b])
			}
			for i, q := range want[b].q {
				v := x[b*blockElems+i]
				if e := math.Abs(float64(float32(q)*want[b].scale - v)); e > float64(want[b].scale)*(0.5+127.0/2048)+1e-7 {
					t.Fatalf("%g became %d of %g", v, q, want[b].scale)
				}
			}
		}
	})
}
