package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzMatMul uses arbitrary bytes as weights in every set of kernels: results must agree with the portable one wherever
// that is not NaN or infinite.
func FuzzMatMul(f *testing.F) {
	for i := range types {
		f.Add(uint8(i), uint8(3), uint8(1), []byte{1, 2, 3, 0x80, 0xff, 0x7f, 0, 0x3c})
		f.Add(uint8(i), uint8(19), uint8(9), []byte{0x80})
	}
	f.Fuzz(func(t *testing.T, typ, rows, n uint8, pattern []byte) {
		if len(pattern) == 0 {
			t.Skip("no bytes for weights")
		}
		m := Matrix{Type: types[int(typ)%len(types)], Rows: int(rows)%40 + 1, Cols: 256}
		m.Data = make([]byte, m.Rows*m.Type.RowBytes(m.Cols))
		for i := range m.Data {
			m.Data[i] = pattern[i%len(pattern)] + byte(i/len(pattern)*7)
		}
		a := batch(rand.New(rand.NewPCG(uint64(rows), uint64(n))), int(n)%20+1, m.Cols, m.Type.Form())
		compareLevels(t, &m, a)
	})
}

func compareLevels(t *testing.T, m *Matrix, a *Activations) {
	defer func() { active = chooseLevel("", detect()) }()
	want, got := make([]float32, a.Len()*m.Rows), make([]float32, a.Len()*m.Rows)
	active = portable
	MatMul(want, m.Rows, m, 0, m.Rows, a, 0, a.Len())
	for active = avx2; active <= detect(); active++ {
		MatMul(got, m.Rows, m, 0, m.Rows, a, 0, a.Len())
		w := make([]float32, m.Cols)
		for i, v := range want {
			m.Dequantize(w, i%m.Rows)
			if _, size := exact(m, w, a, i/m.Rows); size < math.MaxFloat32/1e3 && !(math.Abs(float64(got[i]-v)) <= 4e-6*size) {
				t.Fatalf("%s %s: row %d of vector %d is %g, portable %g", names[active], m.Type, i%m.Rows, i/m.Rows, got[i], v)
			}
		}
	}
}
