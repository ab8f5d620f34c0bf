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
	sum            event.Calls // undefined without passes
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
	s.rates.at(e.At).calls.add(&callSums{1, uint64(e.N), *c})
}

// callsOf returns what a pass called of CUDA; nil if that is not known.
func callsOf(s *state, step uint64) *event.Calls {
	if p := &s.calls[step%keptCalls]; step != 0 && p.step == step {
		return p.calls
	}
	return nil
}

func (w *callSums) add(o *callSums) {
	if o.passes == 0 {
		return
	}
	if w.passes == 0 {
		w.sum = event.NoCalls()
	}
	w.passes, w.tokens = w.passes+o.passes, w.tokens+o.tokens
	w.sum.Add(&o.sum)
}

// rates returns the sums per token, and as shares of the passes.
func (w *callSums) rates() CallRates {
	of := func(total float64, parts ...event.Reading) event.Reading {
		var sum float64
		for _, r := range parts {
			if w.passes == 0 || !r.OK() || total <= 0 {
				return event.Absent(event.NotReported)
			}
			sum += r.V
		}
		return event.MeasuredValue(sum / total)
	}
	c, tokens, dur := &w.sum, float64(w.tokens), w.sum.Pass.V
	return CallRates{
		Launches: of(tokens, c.Launches), Graphs: of(tokens, c.Graphs), To: of(tokens, c.To), From: of(tokens, c.From),
		Copying: of(dur, c.ToTime, c.FromTime), Wait: of(dur, c.Wait), Gap: of(dur, c.Gap),
	}
}
