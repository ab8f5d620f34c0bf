package model

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Options sets the size of the working memory of a Runner.
type Options struct {
	Context  int // positions of each sequence
	Slots    int // number of sequences
	MaxBatch int // maximum number of rows of a batch
	Threads  int
}

// Runner computes batches on a model. One goroutine drives it.
type Runner struct {
	*Weights
	opt    Options
	pool   *tensor.Pool
	rotary *tensor.Rotary
	kv     []*tensor.KV // [slot][layer][KV head]
	hooks  engine.Hooks
	scale  float32        // of attention scores: attnScale²/sqrt(head dimension)
	counts *event.Experts // the picks since load, which worker 0 counts; nil for a dense model

	// State of the current batch. Slices indexed by row have capacity for MaxBatch rows.
	batch   *engine.Batch
	n       int   // rows
	small   bool  // each worker does the row-by-row work for all rows
	runs    []run // rows of one sequence
	wanted  []int32
	own     []*lane // one per worker, for small batches
	shared  *lane
	q, k, v []float32            // [row][head][dim]
	attn    []float32            // [row][head][dim]
	proj    []float32            // [row][width]: output of attention
	gate    []float32            // [row*used+rank][feed-forward]
	up      []float32            // [row*used+rank][feed-forward]
	down    []float32            // [row*used+rank][width]
	scratch []tensor.AttnScratch // one per worker
	logits  []float32            // [row with logits][vocabulary]
	times   []engine.LayerTime   // per layer
	chosen  []uint16             // [row][layer][rank], with Hooks.Picks
	watch   stopwatch            // of the current batch; used by worker 0 only
}

// lane holds the data of row-by-row work. In a small batch each worker has its own lane with all rows, which saves
// barriers around work that takes less time than a barrier. In a large batch all workers share one lane and divide the
// rows.
type lane struct {
	x    []float32 // [row][width]: hidden state of each token
	norm []float32 // [row][width]: normalised
	prob []float32 // [row][experts]: router probabilities

	picks []int32   // [row][rank], of the current layer
	share []float32 // [row][rank]: weight of each pick in the sum
	lists expertLists

	in, heads, mid tensor.Activations // inputs of the products: normalised states, attention output, intermediate values
}

// smallBatch is the maximum number of rows of a batch whose row-by-row work every worker repeats.
const smallBatch = 4

// run is a range of rows of one sequence at consecutive positions.
type run struct {
	row, n    int
	slot, pos int
}

// expertLists groups rows by expert: rows[begin[e]:begin[e+1]] are the input rows of expert e, the same range of slots
// the indexes of its results, row*used+rank.
type expertLists struct {
	begin       []int32
	rows, slots []int32
}

// forExpert returns the lists of one expert.
func (l *expertLists) forExpert(e int) (rows, slots []int32) {
	return l.rows[l.begin[e]:l.begin[e+1]], l.slots[l.begin[e]:l.begin[e+1]]
}

// Bytes estimates the working memory of a Runner: KV cache and buffers. It uses floating point, since sizes in a
// damaged file may overflow.
func (c *Config) Bytes(o Options) (kv, buffers float64) {
	f := func(n int) float64 { return float64(n) }
	kv = f(o.Slots) * f(c.Layers) * f(c.KVHeads) * f(tensor.KVBytes(c.HeadDim, o.Context))
	heads, middle := f(c.Heads)*f(c.HeadDim), f(c.used())*f(c.FeedForward)
	row := 4*f(c.Width) + 3*heads + 2*f(c.KVHeads)*f(c.HeadDim) + 3*middle + f(c.used())*f(c.Width) + f(c.Experts)
	buffers = row*f(o.MaxBatch+o.Threads*smallBatch) + f(o.Slots)*f(c.Vocab) + // activations and logits
		f(o.Context)*f(c.HeadDim) + 16*f(o.Threads)*f(o.Context) + // rotary tables, attention scores
		4*f(c.Layers)*f(c.Experts) // pick counts
	return kv, 4 * buffers
}

// used returns the number of experts per token: a dense feed-forward network counts as one.
func (c *Config) used() int { return max(c.Used, 1) }

// NewRunner allocates the working memory. Forward allocates only if a text is longer than any before, or if more rows
// request logits than there are slots; it then allocates more than needed, to avoid repetition.
func NewRunner(w *Weights, o Options) *Runner {
	r := &Runner{
		Weights: w, opt: o, pool: tensor.NewPool(o.Threads),
		rotary:  tensor.NewRotary(w.HeadDim, o.Context, w.ropeBase, w.ropeScale, w.rope),
		kv:      make([]*tensor.KV, o.Slots*w.Layers*w.KVHeads),
		scratch: make([]tensor.AttnScratch, o.Threads),
		own:     make([]*lane, o.Threads),
		scale:   float32(w.attnScale * w.attnScale / math.Sqrt(float64(w.HeadDim))),
	}
	for i := range r.kv {
		r.kv[i] = tensor.NewKV(w.HeadDim, o.Context)
	}
	for i := range r.own {
		r.own[i] = r.newLane(min(smallBatch, o.MaxBatch))
	}
	r.shared = r.newLane(o.MaxBatch)
	n, used := o.MaxBatch, w.used()
	heads, kvHeads := w.Heads*w.HeadDim, w.KVHeads*w.HeadDim
	r.q, r.k, r.v = make([]float32, n*heads), make([]float32, n*kvHeads), make([]float32, n*kvHeads)
	r.attn, r.proj = make([]float32, n*heads), make([]float32, n*w.Width)
	r.gate, r.up = make([]float32, n*used*w.FeedForward), make([]float32, n*used*w.FeedForward)
	r.down = make([]float32, n*used*w.Width)
	r.runs, r.wanted = make([]run, 0, n), make([]int32, 0, n)
	r.logits = make([]float32, o.Slots*w.Vocab)
	r.times = make([]engine.LayerTime, w.Layers)
	if !w.Dense() {
		r.counts = engine.NewPicks(w.Layers, w.Experts, w.Used)
	}
	return r
}

func (r *Runner) newLane(rows int) *lane {
	picks := rows * r.used()
	l := &lane{
		x: make([]float32, rows*r.Width), norm: make([]float32, rows*r.Width), prob: make([]float32, rows*max(r.Experts, 1)),
		picks: make([]int32, picks), share: make([]float32, picks),
		lists: expertLists{begin: make([]int32, max(r.Experts, 1)+1), rows: make([]int32, picks), slots: make([]int32, picks)},
	}
	for i := range l.share { // a dense feed-forward network is one expert with weight 1; the router overwrites this
		l.share[i] = 1
	}
	r.resize(l, rows)
	return l
}

// resize sets the number of rows in the inputs of a lane's products.
func (r *Runner) resize(l *lane, n int) {
	l.in.Resize(n, r.Width, r.inForms)
	l.heads.Resize(n, r.Heads*r.HeadDim, r.headForms)
	l.mid.Resize(n*r.used(), r.FeedForward, r.midForms)
}

// Threads returns the ids of the operating system threads that compute, without the thread that calls Forward. Nil if
// they are not available: on systems other than Linux, or with more workers than CPUs that Go may use.
func (r *Runner) Threads() []int { return r.pool.ThreadIDs() }

// Close ends the workers.
func (r *Runner) Close() { r.pool.Close() }

// SetHooks sets what is measured, between batches.
func (r *Runner) SetHooks(h engine.Hooks) {
	r.hooks = h
	if h.Picks && r.chosen == nil && !r.Dense() {
		r.chosen = make([]uint16, r.opt.MaxBatch*r.Layers*r.Used)
	}
}

// accept validates a batch and finds its runs and the rows that request logits.
func (r *Runner) accept(b *engine.Batch) error {
	if err := b.Check(r.opt.MaxBatch, r.Vocab, r.opt.Context, r.opt.Slots); err != nil {
		return err
	}
	r.batch, r.n, r.small = b, len(b.Rows), len(b.Rows) <= smallBatch
	r.runs, r.wanted = r.runs[:0], r.wanted[:0]
	for i, row := range b.Rows {
		if row.Logits {
			r.wanted = append(r.wanted, int32(i))
		}
		if n := len(r.runs); n > 0 {
			last := &r.runs[n-1]
			if last.slot == int(row.Slot) && last.pos+last.n == int(row.Pos) {
				last.n++
				continue
			}
		}
		r.runs = append(r.runs, run{row: i, n: 1, slot: int(row.Slot), pos: int(row.Pos)})
	}
	if need := len(r.wanted) * r.Vocab; len(r.logits) < need {
		r.logits = make([]float32, need)
	}
	if !r.small {
		r.resize(r.shared, r.n)
		return nil
	}
	for _, l := range r.own {
		r.resize(l, r.n)
	}
	return nil
}
