// Package workload drives an engine with a workload: a fixed concurrency or a fixed rate, repeated, and records which
// request belongs to which run. The store holds the measurements of the requests.
package workload

import (
	"errors"
	"fmt"
	"math"

	"github.com/llmtop/llmtop/runtime/engine"
)

// Workload configures a benchmark.
type Workload struct {
	Points  []Point
	Repeats int // runs of every point, at least 1; the points take turns, so that drift over time affects all of them
	Warmup  int // requests before the first run of each point; they are not measured
	Seed    uint64
}

// Point is one setting of the workload: a closed loop with a Concurrency, or an open loop with a Rate.
type Point struct {
	Name        string
	Requests    []engine.Request // requests of one run, in order; every run sends the same
	Concurrency int              // closed loop: number of concurrent requests
	Rate        float64          // open loop: requests/s, whether earlier ones have ended or not
	Burstiness  float64          // open loop: 1 Poisson, below 1 burstier, above 1 more regular, +Inf a constant interval

	// Vary, if not nil, changes each request before it is sent, in the order of sending, so that no prompt is in the
	// engine's prefix cache.
	Vary func(r *engine.Request)
}

// check validates a workload.
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

// Total returns the number of requests of the workload, including the warm-up.
func (w *Workload) Total() int {
	n := 0
	for i := range w.Points {
		n += w.Warmup + w.Repeats*len(w.Points[i].Requests)
	}
	return n
}
