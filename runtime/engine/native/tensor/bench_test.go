package tensor

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchProduct reports the weights read and the multiplications per second.
func benchProduct(b *testing.B, t Type, rows, cols, n int) {
	r := rand.New(rand.NewPCG(1, 1))
	m, a := randomMatrix(r, t, rows, cols), batch(r, n, cols, t.Form())
	dst := make([]float32, n*rows)
	b.SetBytes(int64(len(m.Data)))
	for b.Loop() {
		MatMul(dst, rows, &m, 0, rows, a, 0, n)
	}
	b.ReportMetric(2*float64(rows*cols*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// levels runs a benchmark with each set of kernels that this machine supports.
func levels(b *testing.B, bench func(b *testing.B)) {
	for l := portable; l <= detect(); l++ {
		b.Run(names[l], func(b *testing.B) {
			active = l
			defer func() { active = chooseLevel("", detect()) }()
			bench(b)
		})
	}
}

func BenchmarkMatVec(b *testing.B) {
	for _, t := range types {
		b.Run(t.String(), func(b *testing.B) {
			levels(b, func(b *testing.B) { benchProduct(b, t, 128, 256, 1) })
		})
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, t := range types {
		b.Run(t.String(), func(b *testing.B) {
			levels(b, func(b *testing.B) { benchProduct(b, t, 128, 256, 64) })
		})
	}
}

// BenchmarkShapes measures the products of the built-in model: one vector for decode, more for prefill.
func BenchmarkShapes(b *testing.B) {
	for _, s := range []struct{ rows, cols, n int }{
		{192, 192, 1}, {128, 192, 1}, {192, 128, 1}, {4096, 192, 1}, {192, 192, 2}, {192, 192, 4}, {192, 192, 256}, {128, 192, 32}, {192, 128, 32},
	} {
		b.Run(fmt.Sprintf("%dx%dx%d", s.rows, s.cols, s.n), func(b *testing.B) { benchProduct(b, Q8_0, s.rows, s.cols, s.n) })
	}
}
