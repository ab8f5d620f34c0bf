// Package bench drives an engine with a workload: so many requests side by side, or a second, again and again, and keeps account of which
// request was made for what. What the requests measured is for the store to say.
package bench

import (
	"errors"
	"fmt"
	"math"

	"github.com/llmtop/llmtop/runtime"
)

// Workload is what a benchmark does.
type Workload struct {
	Points  []Point
	Repeats int // of every point, 1 at least; the points take turns, so that what drifts meets all of them
	Warmup  int // requests before the first run of each point that count for nothing
	Seed    uint64
}

// Point is one setting of the workload: closed loop with a Concurrency, or open loop with a Rate.
type Point struct {
	Name        string
	Requests    []runtime.Request // of one run, in order; each run makes the same
	Concurrency int               // closed loop: requests side by side, the next one when one has ended
	Rate        float64           // open loop: requests/s, whatever becomes of those before
	Burstiness  float64           // of the open loop: 1 Poisson, below 1 burstier, above 1 steadier, +Inf a constant interval

	// Vary, unless it is nil, changes the i-th request for a run (from 1; 0 is the warm-up), so that an engine has not seen its prompt before.
	Vary func(run, i int, r *runtime.Request)
}

// check refuses a workload that cannot be run.
func (w *Workload) check() error {
	if len(w.Points) == 0 {
		return errors.New("the workload has no points")
	}
	if w.Repeats < 1 || w.Warmup < 0 {
		return fmt.Errorf("%d repeats and %d requests to warm up: must be 1 and 0 or more", w.Repeats, w.Warmup)
	}
	for i := range w.Points {
		p := &w.Points[i]
		open, closed := p.Rate > 0 && !math.IsInf(p.Rate, 1), p.Concurrency > 0
		switch {
		case len(p.Requests) == 0:
			return fmt.Errorf("%s: no requests", p.Name)
		case open == closed:
			return fmt.Errorf("%s: concurrency %d and rate %v: one of them must be set", p.Name, p.Concurrency, p.Rate)
		case open && !(p.Burstiness > 0):
			return fmt.Errorf("%s: burstiness %v: must be more than 0", p.Name, p.Burstiness)
		}
	}
	return nil
}

// Total is how many requests the workload makes, those to warm up included.
func (w *Workload) Total() int {
	n := 0
	for i := range w.Points {
		n += w.Warmup + w.Repeats*len(w.Points[i].Requests)
	}
	return n
}
