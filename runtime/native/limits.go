package native

import (
	"runtime"
	"time"

	"github.com/llmtop/llmtop/runtime/native/tensor"
)

// Limits are what this machine's processors reach with the engine's own kernels, on Q8_0 weights with all threads.
type Limits struct {
	Threads int
	Kernels string
	Read    float64 // B/s of weights that matrix-vector products read from memory: the bound of decode
	Compute float64 // FLOP/s of matrix products in the caches, a multiplication and an addition counted as two: the bound of prefill
}

// The shapes that limits are measured with.
const (
	limitCols   = 4096
	limitRows   = 32 << 10 // of each thread: 143 MB of weights, beyond any cache
	mostRows    = 8 * limitRows
	cachedCols  = 512
	cachedRows  = 256 // of each thread: 139 kB of weights, which a core's cache holds
	cachedBatch = 64
	limitRounds = 5
	limitSpan   = 50 * time.Millisecond // of a round of products in the caches
)

// MeasureLimits takes about two seconds. threads: 0 is one a core.
func MeasureLimits(threads int) Limits {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	pool := tensor.NewPool(threads)
	defer pool.Close()
	l := Limits{Threads: threads, Kernels: tensor.Features()}
	l.Read = measureProducts(pool, min(threads*limitRows, mostRows), limitCols, 1, func(p *products) float64 { return float64(len(p.matrix.Data)) })
	l.Compute = measureProducts(pool, threads*cachedRows, cachedCols, cachedBatch, func(p *products) float64 {
		return 2 * float64(p.matrix.Rows) * float64(p.matrix.Cols) * float64(p.in.Len())
	})
	return l
}

// products is a task: every worker multiplies its own rows, repeats times.
type products struct {
	matrix  tensor.Matrix
	in      tensor.Activations
	out     []float32
	repeats int
}

// Do implements tensor.Task.
func (p *products) Do(w *tensor.Worker) {
	lo, hi := w.Split(p.matrix.Rows, 1)
	for range p.repeats {
		tensor.MatMul(p.out, p.matrix.Rows, &p.matrix, lo, hi, &p.in, 0, p.in.Len())
	}
}

// measureProducts is the best rate of a few rounds, in what one product of all workers amounts to a second.
func measureProducts(pool *tensor.Pool, rows, cols, n int, amount func(*products) float64) (best float64) {
	p := &products{repeats: 1}
	p.matrix = tensor.Matrix{Type: tensor.Q8_0, Rows: rows, Cols: cols}
	p.matrix.Data = make([]byte, p.matrix.Rows*tensor.Q8_0.RowBytes(cols))
	for i := range p.matrix.Data { // so that pages are not all the same one of zeroes; what is computed does not matter
		p.matrix.Data[i] = byte(i & 0x3f)
	}
	p.in.Resize(n, cols, tensor.Q8_0.Form())
	x := make([]float32, cols)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	for i := range n {
		p.in.Quantize(i, x, tensor.Q8_0.Form())
	}
	p.out = make([]float32, n*p.matrix.Rows)
	once := p.round(pool)
	p.repeats = max(int(limitSpan/max(once, 1)), 1)
	for range limitRounds {
		best = max(best, amount(p)*float64(p.repeats)/p.round(pool).Seconds())
	}
	return best
}

func (p *products) round(pool *tensor.Pool) time.Duration {
	began := time.Now()
	pool.Run(p)
	return time.Since(began)
}
