package store

import "github.com/llmtop/llmtop/profiler/event"

// CallRates is what the decode passes of the last ten seconds called of CUDA, of those of which it is known: launches, graphs
// and bytes per generated token, and shares of the time of the passes.
type CallRates struct {
	Launches, Graphs, To, From event.Reading
	Copying, Wait, Gap         event.Reading
}

// callSums sums what passes called of CUDA.
type callSums struct {
	passes, tokens uint64
	sum            [9]float64 // in the order of event.Calls.Readings
	known          [9]uint64  // passes of which it is known
}

// keptCalls bounds how many passes a token may lag behind the pass that made it.
const keptCalls = 64

// addCalls keeps what a pass called of CUDA for its tokens, and counts a decode pass.
func addCalls(s *state, e *event.Event) {
	c, _ := e.Data.(*event.Calls)
	if c == nil {
		return
	}
	s.calls[e.Step%keptCalls].step, s.calls[e.Step%keptCalls].calls = e.Step, c
	if e.Prompt > 0 || e.N <= 0 {
		return
	}
	w := &s.rates.at(e.At).calls
	w.passes, w.tokens = w.passes+1, w.tokens+uint64(e.N)
	for i, r := range c.Readings() {
		if r.OK() && r.V >= 0 {
			w.sum[i], w.known[i] = w.sum[i]+r.V, w.known[i]+1
		}
	}
}

// callsOf returns what a pass called of CUDA; nil if that is not known.
func callsOf(s *state, step uint64) *event.Calls {
	if p := &s.calls[step%keptCalls]; step != 0 && p.step == step {
		return p.calls
	}
	return nil
}

func (w *callSums) add(o *callSums) {
	w.passes, w.tokens = w.passes+o.passes, w.tokens+o.tokens
	for i := range w.sum {
		w.sum[i], w.known[i] = w.sum[i]+o.sum[i], w.known[i]+o.known[i]
	}
}

// rates returns the sums per token, and as shares of the passes. One that is not known of all passes is not reported.
func (w *callSums) rates() CallRates {
	of := func(total float64, fields ...int) event.Reading {
		var sum float64
		for _, i := range fields {
			if w.passes == 0 || w.known[i] != w.passes || total <= 0 {
				return event.Absent(event.NotReported)
			}
			sum += w.sum[i]
		}
		return event.MeasuredValue(sum / total)
	}
	tokens, dur := float64(w.tokens), w.sum[8]
	return CallRates{
		Launches: of(tokens, 0), Graphs: of(tokens, 1), To: of(tokens, 2), From: of(tokens, 3),
		Copying: of(dur, 4, 5), Wait: of(dur, 6), Gap: of(dur, 7),
	}
}
