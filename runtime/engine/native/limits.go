package native

import (
	"runtime"
	"time"

	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Limits are the speeds that this machine's CPU reaches with the engine's own kernels, on Q8_0 weights with all
// threads.
type Limits struct {
	Threads int
	Kernels string
	Read    float64 // B/s of weights that matrix-vector products read from memory: the limit of decode
	Compute float64 // FLOP/s of matrix products on cached data, a multiply-add counted as two: the limit of prefill
}

// Matrix shapes of the measurement.
const (
	limitCols   = 4096
	limitRows   = 32 << 10 // per thread: 143 MB of weights, larger than any cache
	mostRows    = 8 * limitRows
	cachedCols  = 512
	cachedRows  = 256 // per thread: 139 kB of weights, which fit in a core's cache
	cachedBatch = 64
	limitRounds = 5
	limitSpan   = 50 * time.Millisecond // duration of a round of cached products
)

// MeasureLimits measures the limits in about two seconds. threads 0 means one per core.
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

// measureProducts returns the best rate of a few rounds, in amount per second; amount is that of one product of all
// workers.
func measureProducts(pool *tensor.Pool, rows, cols, n int, amount func(*products) float64) (best float64) {
	p := &products{repeats: 1}
	p.matrix = tensor.Matrix{Type: tensor.Q8_0, Rows: rows, Cols: cols}
	p.matrix.Data = make([]byte, p.matrix.Rows*tensor.Q8_0.RowBytes(cols))
	for i := range p.matrix.Data { // non-zero data, so that pages are not all mapped to the zero page; values do not matter
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
