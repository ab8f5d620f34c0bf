package tensor

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
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

// BenchmarkPrompt measures a product of a model of real size with prompts of 32 and 512 tokens. The longer one should not
// be slower per token.
func BenchmarkPrompt(b *testing.B) {
	for _, t := range types {
		for _, n := range []int{32, 512} {
			b.Run(fmt.Sprintf("%s/%d", t, n), func(b *testing.B) { benchProduct(b, t, 512, 2048, n) })
		}
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

// BenchmarkStream measures how fast products with one vector read weights that fit in no cache, by one thread and by
// all. "read" only sums them: what the machine delivers.
func BenchmarkStream(b *testing.B) {
	const size, cols = 768 << 20, 2048
	data := make([]byte, size)
	for threads := 1; threads <= runtime.GOMAXPROCS(0); threads++ {
		pool := NewPool(threads)
		defer pool.Close()
		run := func(name string, s *stream) {
			b.Run(fmt.Sprintf("threads=%d/%s", threads, name), func(b *testing.B) {
				b.SetBytes(int64(s.m.Rows * s.m.Type.RowBytes(cols)))
				for b.Loop() {
					pool.Run(s)
				}
			})
		}
		for _, t := range types {
			part := randomMatrix(rand.New(rand.NewPCG(1, 1)), t, 512, cols)
			rows := size / t.RowBytes(cols)
			for at := 0; at < size; at += copy(data[at:], part.Data) {
			}
			s := &stream{m: Matrix{Type: t, Rows: rows, Cols: cols, Data: data}, dst: make([]float32, rows)}
			s.a = batch(rand.New(rand.NewPCG(1, 1)), 1, cols, t.Form())
			if t == F32 {
				run("read", &stream{m: s.m})
			}
			for active = avx2; active <= detect(); active++ {
				run(t.String()+"/"+names[active], s)
			}
			active = chooseLevel("", detect())
		}
	}
}

// stream is a product with one vector, or without one the sum of squares of the weights.
type stream struct {
	m   Matrix
	a   *Activations
	dst []float32
}

func (s *stream) Do(w *Worker) {
	lo, hi := w.Split(s.m.Rows, RowTile)
	if s.a != nil {
		MatVec(s.dst, &s.m, lo, hi, s.a, 0)
		return
	}
	for row := lo; row < hi; row++ {
		x := unsafe.Slice((*float32)(unsafe.Pointer(&s.m.Row(row)[0])), s.m.Cols)
		sets[active].dot(x, x)
	}
}
