package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// rateSlots is the number of seconds kept: ten for the window, the current one included, and one to spare.
const rateSlots = 11

// rates counts tokens and busy time per second.
type rates struct {
	second           int64
	slots            [rateSlots]secondWork // second s at s % rateSlots
	passes           bool                  // forward passes are reported: nothing is derived from tokens
	stepsHavePrompts bool                  // forward passes report prompt tokens: do not count them from stages as well
	trend            Trend

	passStep, passRows uint64 // the last decode pass, and the tokens counted for its batch until tokens name it
	passSecond         int64
	earlyStep, early   uint64 // tokens that came before their pass
}

// secondWork is the work of one second.
type secondWork struct {
	second                        int64
	generatedTokens, promptTokens uint64
	finished                      uint64 // requests
	covered                       int64  // ns that reports of aggregate metrics cover
	busy, promptBusy, decodeBusy  int64  // ns of all passes, of those with prompt tokens, of decode-only ones
	decodeTokens, decodePasses    uint64 // of the passes in decodeBusy
	batchPasses, countedPasses    uint64 // decode passes of several tokens, and those of them whose picks are known
	distinctPicks, singlePicks    uint64 // of countedPasses: experts of all tokens, and of one
	calls                         callSums
}

// at returns the slot of a time. Times that run backwards count in the current second.
func (r *rates) at(t event.Time) *secondWork {
	r.second = max(r.second, int64(t)/int64(time.Second))
	w := &r.slots[r.second%rateSlots]
	if w.second != r.second {
		*w = secondWork{second: r.second}
	}
	return w
}

func (r *rates) addGenerated(t event.Time, k int) { r.at(t).generatedTokens += uint64(k) }

// addReport counts what a report of aggregate metrics covers.
func (r *rates) addReport(t event.Time, p *event.Aggregates) {
	w := r.at(t)
	w.generatedTokens += countOf(p.Generated)
	w.finished += countOf(p.Finished)
	if p.Generated.OK() || p.Finished.OK() {
		w.covered = event.Add(w.covered, max(p.Interval, 0))
	}
}

func (r *rates) addFinished(t event.Time, n uint64) { r.at(t).finished += n }

// addPrompt counts a processed prompt, for sources that do not report forward passes.
func (r *rates) addPrompt(t event.Time, dur int64, n int) {
	if r.stepsHavePrompts || n <= 0 {
		return
	}
	w := r.at(t)
	w.promptTokens += uint64(n)
	w.promptBusy = event.Add(w.promptBusy, dur)
}

// addStep counts a forward pass.
func (r *rates) addStep(e *event.Event) {
	if !r.passes {
		r.passes = true
		for i := range r.slots { // of the tokens that these passes made, or passes before them
			w := &r.slots[i]
			w.busy, w.decodeBusy, w.decodeTokens = 0, 0, 0
		}
	}
	w := r.at(e.At)
	w.busy = event.Add(w.busy, e.Dur)
	if e.Prompt > 0 {
		r.stepsHavePrompts = true
		w.promptTokens += uint64(e.Prompt)
		w.promptBusy = event.Add(w.promptBusy, e.Dur)
	} else if e.N > 0 {
		w.decodeBusy = event.Add(w.decodeBusy, e.Dur)
		w.decodeTokens += uint64(e.N)
		if r.passStep, r.passRows, r.passSecond = e.Step, uint64(e.N), r.second; r.earlyStep == e.Step {
			r.addMade(e.Step, r.early)
		}
		w.decodePasses++
		if e.N > 1 {
			w.batchPasses++
		}
	}
	r.earlyStep = 0
}

// addMade counts k tokens by the pass that made them. The rows of its batch are not what it made: drafted tokens may be
// refused, and a row may make several.
func (r *rates) addMade(step, k uint64) {
	w := &r.slots[r.passSecond%rateSlots]
	switch {
	case step == 0:
	case step != r.passStep:
		if step != r.earlyStep {
			r.earlyStep, r.early = step, 0
		}
		r.early += k
	case w.second == r.passSecond:
		w.decodeTokens += k - r.passRows
		r.passRows = 0
	}
}

// addBusy counts time in which a request was running, of an engine that reports no forward passes.
func (r *rates) addBusy(t event.Time, ns int64) {
	w := r.at(t)
	w.busy = event.Add(w.busy, ns)
}

// addDecode counts k tokens and the time in which they were generated, of an engine that reports no forward passes.
func (r *rates) addDecode(t event.Time, ns int64, k int) {
	w := r.at(t)
	w.decodeBusy = event.Add(w.decodeBusy, ns)
	w.decodeTokens += uint64(k)
}

// addPass counts the picks of a decode pass of several tokens.
func (r *rates) addPass(t event.Time, distinct, single int) {
	w := r.at(t)
	w.countedPasses++
	w.distinctPicks += uint64(distinct)
	w.singlePicks += uint64(single)
}

// ran reports whether tokens were processed or requests finished in a second.
func (r *rates) ran(sec int64) bool {
	w := &r.slots[sec%rateSlots]
	return w.second == sec && w.generatedTokens+w.promptTokens+w.finished > 0
}

// sum adds up the work of the current second and the n-1 before it.
func (r *rates) sum(now event.Time, n int64) (total secondWork) {
	last := int64(now) / int64(time.Second)
	for _, w := range r.slots {
		if w.second > last-n {
			total.generatedTokens += w.generatedTokens
			total.finished += w.finished
			total.covered = event.Add(total.covered, w.covered)
			total.promptTokens += w.promptTokens
			total.busy = event.Add(total.busy, w.busy)
			total.promptBusy = event.Add(total.promptBusy, w.promptBusy)
			total.decodeBusy = event.Add(total.decodeBusy, w.decodeBusy)
			total.decodeTokens += w.decodeTokens
			total.decodePasses += w.decodePasses
			total.batchPasses += w.batchPasses
			total.countedPasses += w.countedPasses
			total.distinctPicks += w.distinctPicks
			total.singlePicks += w.singlePicks
			total.calls.add(&w.calls)
		}
	}
	return total
}

// busyRate returns n per second of busy time (ns); NotYet if there was none.
func busyRate(n uint64, ns int64) event.Reading {
	if n == 0 || ns <= 0 {
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(float64(n) / (float64(ns) / second))
}
