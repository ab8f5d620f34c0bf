package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var types = []Type{F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K}

// randomMatrix returns a matrix of random bytes with scales that are random half floats of moderate size. The data
// starts at an odd address, as is possible in a file.
func randomMatrix(r *rand.Rand, t Type, rows, cols int) Matrix {
	data := make([]byte, rows*t.RowBytes(cols)+1)[1:]
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	half := func(at int) {
		binary.LittleEndian.PutUint16(data[at:], FloatToHalf(float32(r.NormFloat64()*0.02)))
	}
	for at := 0; at < len(data); at += t.BlockBytes() {
		switch t {
		case F32:
			binary.LittleEndian.PutUint32(data[at:], math.Float32bits(float32(r.NormFloat64())))
		case BF16:
			binary.LittleEndian.PutUint16(data[at:], uint16(math.Float32bits(float32(r.NormFloat64()))>>16))
		case F16, Q8_0, Q4_0:
			half(at)
		case Q4_K, Q5_K:
			half(at)
			half(at + 2)
		case Q6_K:
			half(at + 208)
		}
	}
	return Matrix{Type: t, Rows: rows, Cols: cols, Data: data}
}

func randomVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// atLevels runs a test with each set of kernels above from that this machine supports.
func atLevels(t *testing.T, from level, test func(t *testing.T)) {
	t.Helper()
	best := detect()
	if best < from {
		t.Skipf("this CPU supports no kernels above %q", names[best])
	}
	for l := from; l <= best; l++ {
		t.Run(names[l], func(t *testing.T) {
			active = l
			defer func() { active = chooseLevel("", best) }()
			test(t)
		})
	}
}

// batch returns n random vectors in all forms possible for cols.
func batch(r *rand.Rand, n, cols int, forms Form) *Activations {
	a := &Activations{}
	a.Resize(n, cols, forms)
	for i := range n {
		a.Quantize(i, randomVector(r, cols), forms)
	}
	return a
}

// exact computes the product of a row w of m and a vector in float64 from the same quantised values, and the sum of
// magnitudes, which bounds the rounding error of a float32 sum.
func exact(m *Matrix, w []float32, a *Activations, i int) (sum, size float64) {
	for c, v := range w {
		var x float64
		if m.Type.Form() == FormF32 {
			x = float64(a.f32[i*a.cols+c])
		} else {
			b := &a.q80[i*a.blocks+c/blockElems]
			x = float64(b.q[c%blockElems]) * float64(b.scale)
		}
		sum += float64(v) * x
		size += math.Abs(float64(v) * x)
	}
	return sum, size
}

func TestMatMulAgainstFloat64(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, typ := range types {
			for _, cols := range []int{5, 20, 32, 64, 192, 256, 768, 4096} {
				if cols%typ.BlockElems() != 0 {
					continue
				}
				for _, rows := range []int{1, 3, 16, 37} {
					if cols == 4096 {
						rows = (rows + 1) / 2
					}
					m := randomMatrix(r, typ, rows, cols)
					checkProduct(t, &m, batch(r, 13, cols, typ.Form()))
				}
			}
		}
	})
}

// checkProduct compares a whole product with float64. The tolerance is far below the effect of one wrong value.
func checkProduct(t *testing.T, m *Matrix, a *Activations) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, a.Len()*m.Rows)
	MatMul(dst, m.Rows, m, 0, m.Rows, a, 0, a.Len())
	vectors := make([]float32, len(dst)) // by other kernels
	for i := range a.Len() {
		MatVec(vectors[i*m.Rows:(i+1)*m.Rows], m, 0, m.Rows, a, i)
	}
	w := make([]float32, m.Cols)
	for row := range m.Rows {
		m.Dequantize(w, row)
		for i := range a.Len() {
			want, size := exact(m, w, a, i)
			if got := float64(dst[i*m.Rows+row]); !(math.Abs(got-want) <= 2e-6*size) {
				t.Fatalf("%s %dx%d row %d vector %d: got %g, want %g", m.Type, m.Rows, m.Cols, row, i, got, want)
			} else if v := vectors[i*m.Rows+row]; float64(v) != got {
				t.Fatalf("%s %dx%d row %d vector %d: got %g, %g by MatVec", m.Type, m.Rows, m.Cols, row, i, got, v)
			}
		}
	}
}

// The largest integers: weights and activations at both ends of their range, where 16-bit sums would saturate.
func TestMatMulExtremes(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, typ := range types {
			if typ.Form() == FormF32 {
				continue
			}
			for _, fill := range []byte{0, 0x7f, 0x80, 0xff} {
				m := randomMatrix(r, typ, 17, 512)
				head := map[Type]int{Q8_0: 2, Q4_0: 2, Q4_K: 4, Q5_K: 4}[typ]
				for at := 0; at < len(m.Data); at += typ.BlockBytes() {
					for i := head; i < typ.BlockBytes() && (typ != Q6_K || i < 208); i++ {
						m.Data[at+i] = fill
						if typ == Q6_K && i >= 192 { // scales down to -128
							m.Data[at+i] |= 0x80
						}
					}
				}
				checkProduct(t, &m, extremeVectors(typ.Form()))
			}
		}
	})
}

// extremeVectors returns vectors of 512 values: the largest, the smallest, alternating, zeros, and denormals.
func extremeVectors(f Form) *Activations {
	a := &Activations{}
	a.Resize(6, 512, f)
	x := make([]float32, 512)
	for v, value := range []func(i int) float32{
		func(int) float32 { return 3 },
		func(int) float32 { return -3 },
		func(i int) float32 { return float32(i%2*2 - 1) },
		func(int) float32 { return 0 },
		func(i int) float32 { return float32(i) * 1e-41 },
		func(i int) float32 { return float32(i%7) * 1e4 },
	} {
		for i := range x {
			x[i] = value(i)
		}
		a.Quantize(v, x, f)
	}
	return a
}

// Zero and infinite scales give the results of float arithmetic.
func TestMatMulScales(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		for _, typ := range []Type{Q8_0, Q4_0} {
			m := Matrix{Type: typ, Rows: 2, Cols: 32, Data: make([]byte, 2*typ.RowBytes(32))}
			for i := range m.Data {
				m.Data[i] = 1
			}
			binary.LittleEndian.PutUint16(m.Data, 0x7c00)
			binary.LittleEndian.PutUint16(m.Data[typ.BlockBytes():], 0)
			a := &Activations{}
			a.Resize(1, 32, FormQ80)
			x := make([]float32, 32)
			for i := range x {
				x[i] = 1
			}
			a.Quantize(0, x, FormQ80)
			var dst [2]float32
			MatVec(dst[:], &m, 0, 2, a, 0)
			if !math.IsInf(float64(dst[0]), 0) || dst[1] != 0 {
				t.Errorf("%s: scales ∞ and 0 give %v", typ, dst)
			}
		}
	})
}

// A result has the same bits however the work is divided into calls.
func TestProductsAreReproducible(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, typ := range types {
			for _, rows := range []int{5, 16, 75} {
				m := randomMatrix(r, typ, rows, 512)
				a := batch(r, 23, 512, typ.Form())
				whole := make([]float32, 23*rows)
				MatMul(whole, rows, &m, 0, rows, a, 0, 23)
				t.Run(fmt.Sprintf("%s/%d", typ, rows), func(t *testing.T) { checkCuts(t, &m, a, whole) })
			}
		}
	})
}

// A batch that is too large for the cache is computed in parts, and gives the same bits.
func TestLargeBatchesAreReproducible(t *testing.T) {
	const n, rows = 150, 37
	atLevels(t, avx2, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, typ := range types {
			m := randomMatrix(r, typ, rows, 4096)
			a := batch(r, n, 4096, typ.Form())
			whole, gathered, vec := make([]float32, n*rows), make([]float32, n*rows), make([]float32, rows)
			MatMul(whole, rows, &m, 0, rows, a, 0, n)
			list := make([]int32, n)
			for i := range list {
				list[i] = int32(n - 1 - i)
			}
			MatMulGather(gathered, rows, &m, 0, rows, a, list, list)
			for i := range n {
				MatVec(vec, &m, 0, rows, a, i)
				for row, want := range vec {
					if at := i*rows + row; whole[at] != want || gathered[at] != want {
						t.Fatalf("%s: vector %d row %d is %g, %g in a batch, %g gathered", typ, i, row, want, whole[at], gathered[at])
					}
				}
			}
		}
	})
}

func checkCuts(t *testing.T, m *Matrix, a *Activations, whole []float32) {
	rows, n := m.Rows, a.Len()
	for _, cut := range []int{1, 3, 16, 40} {
		vec, mat := make([]float32, n*rows), make([]float32, n*rows)
		gathered, scattered := make([]float32, n*rows), make([]float32, n*rows)
		odd := []int32{}
		for i := range n {
			for lo := 0; lo < rows; lo += cut {
				MatVec(vec[i*rows:(i+1)*rows], m, lo, min(lo+cut, rows), a, i)
			}
			if i%2 == 1 {
				odd = append(odd, int32(i))
			}
		}
		for lo := 0; lo < rows; lo += cut {
			hi := min(lo+cut, rows)
			for i := 0; i < n; i += 5 {
				MatMul(mat, rows, m, lo, hi, a, i, min(i+5, n))
			}
			MatMulGather(gathered, rows, m, lo, hi, a, odd, nil)
			MatMulGather(scattered, rows, m, lo, hi, a, odd, odd)
		}
		for i := range whole {
			if vec[i] != whole[i] || mat[i] != whole[i] {
				t.Fatalf("cut %d: value %d is %g, %g by MatVec, %g by MatMul in parts", cut, i, whole[i], vec[i], mat[i])
			}
		}
		for j, i := range odd {
			for row := range rows {
				want := whole[int(i)*rows+row]
				if g, s := gathered[j*rows+row], scattered[int(i)*rows+row]; g != want || s != want {
					t.Fatalf("cut %d: vector %d row %d is %g, %g gathered, %g scattered", cut, i, row, want, g, s)
				}
			}
		}
		if scattered[0] != 0 {
			t.Fatal("a row outside the list was written")
		}
	}
}

func TestMatMulDoesNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, typ := range types {
		m, x := randomMatrix(r, typ, 48, 256), randomVector(r, 256)
		a, dst := batch(r, 9, 256, typ.Form()), make([]float32, 9*48)
		if n := testing.AllocsPerRun(20, func() {
			a.Resize(9, 256, typ.Form())
			a.Quantize(3, x, typ.Form())
			MatMul(dst, 48, &m, 0, 48, a, 0, 9)
			MatVec(dst, &m, 3, 17, a, 2)
		}); n != 0 {
			t.Errorf("%s: %v allocations", typ, n)
		}
	}
}
