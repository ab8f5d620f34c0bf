//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
)

const (
	// maxCost is the share of the time that measuring may cost: below the 1 % budget, with a margin for noise.
	maxCost = 0.008
	// settle is how many passes after a measured one may be slow: a GPU that replays a recorded graph records it again.
	settle = 3
	// fewestPlain is how many plain passes a measured one is compared with, at least.
	fewestPlain = 3
	// timesKept and plainKept are how many measured and plain passes the rate follows from: the latter become slower with
	// the context.
	timesKept, plainKept = 32, 8
	// checkEvery is how many passes are measured, if that costs little, before plain ones show what it costs.
	checkEvery = 64
	// startEvery is the rate before the first comparison.
	startEvery = settle + fewestPlain + 1
	maxEvery   = 1 << 14
)

// rate chooses the passes to measure, so that measuring costs maxCost at most on any device. It compares what a measured
// pass and the settle passes after it take with the plain passes before them.
type rate struct {
	every    int // one pass in every is measured
	age      int // passes since the last measured one
	measured int // passes since the last plain ones
	rows     int // of the last pass: passes of others take another time
	unlike   int // passes left that cannot be compared

	plain  []float64             // ns of the last ones
	slower [settle + 1][]float64 // time of passes by their age / time of a plain pass
}

// due reports whether to measure the next pass.
func (r *rate) due() bool {
	r.age++
	if r.age < r.every || r.measured >= checkEvery && r.age < startEvery {
		return false
	}
	if r.age >= startEvery {
		r.measured = 0
	}
	r.age = 0
	r.measured++
	return true
}

// took adds the time of the pass after due, in ns.
func (r *rate) took(rows int, ns float64) {
	if rows != r.rows {
		r.disturb()
		r.rows = rows
	}
	switch {
	case r.unlike > 0:
		r.unlike--
	case r.age > settle:
		r.plain = keep(r.plain, ns, plainKept)
	case len(r.plain) >= fewestPlain:
		r.slower[r.age] = keep(r.slower[r.age], ns/typical(r.plain), timesKept)
		if n := r.wanted(); n > r.every || n < r.every*3/4 { // a rate that would be little higher is left
			r.every = n
		}
	}
}

// disturb drops what the next passes cannot be compared with.
func (r *rate) disturb() { r.plain, r.unlike = r.plain[:0], settle }

// wanted returns the rate that the cost of measuring allows.
func (r *rate) wanted() int {
	cost := 0.
	for _, list := range r.slower {
		if len(list) == 0 {
			return r.every
		}
		cost += max(typical(list)-1, 0)
	}
	return int(min(max(math.Ceil(cost/maxCost), 1), maxEvery))
}

// keep appends to a list of the last n values.
func keep(list []float64, v float64, n int) []float64 {
	if len(list) == n {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, v)
}

// typical returns the mean of the middle half. In the others, other programs may have been at work.
func typical(list []float64) (mean float64) {
	sorted := slices.Sorted(slices.Values(list))
	out := len(sorted) / 4
	sorted = sorted[out : len(sorted)-out]
	for _, v := range sorted {
		mean += v / float64(len(sorted))
	}
	return mean
}

// Limits of calibration, which finds the first rate: it takes calibrateFor, and as many passes.
const (
	calibrateFor                       = 200 * time.Millisecond
	fewestCalibration, mostCalibration = 4, 40 * startEvery
)

// calibrate finds the rate for decoding one token, where measuring costs the most.
func (e *Engine) calibrate() error {
	e.SetHooks(engine.Hooks{Split: true, Experts: true})
	began := time.Now()
	for n := 0; n < fewestCalibration || n < mostCalibration && time.Since(began) < calibrateFor; n++ {
		e.rate.every = startEvery
		if err := e.token(); err != nil {
			return err
		}
	}
	e.rate.every = e.rate.wanted()
	e.SetHooks(engine.Hooks{})
	e.passes = [2]int{}
	e.trace.prepare(e.trace.info) // drops the counts of calibration
	return nil
}

// token decodes one token with an empty context.
func (e *Engine) token() error {
	b := engine.Batch{Rows: []engine.Row{{Logits: true}}}
	err := e.Forward(&b)
	e.Release(0)
	return err
}
