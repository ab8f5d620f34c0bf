package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// rateSlots is how many seconds of work a window of ten seconds needs, the current one among them, and one to spare.
const rateSlots = 11

// rates counts tokens and work second by second.
type rates struct {
	second     int64
	slot       [rateSlots]work // of second s at s % rateSlots
	lastPrompt event.Time      // end of the last forward pass with prompt tokens
	prefilled  bool            // a forward pass or a prompt has told of prefill
	points     []RatePoint
}

// work is what was done in one second.
type work struct {
	second                      int64
	generated, prompt           uint64 // tokens
	busy, promptBusy, decodeNow int64  // ns of forward passes; of them with prompt tokens; with decode tokens only
	decodeSum, decodePasses     uint64 // decode tokens of the passes in decodeNow, and their number
}

// at is the slot of a time; times that run backwards count in the current second.
func (r *rates) at(t event.Time) *work {
	r.second = max(r.second, int64(t)/int64(time.Second))
	w := &r.slot[r.second%rateSlots]
	if w.second != r.second {
		*w = work{second: r.second}
	}
	return w
}

func (r *rates) generated(t event.Time, k int) { r.at(t).generated += uint64(k) }

// prompted counts a prompt that was processed, for sources that do not tell of single steps.
func (r *rates) prompted(t event.Time, dur int64, n int) {
	if r.prefilled || n <= 0 {
		return
	}
	w := r.at(t)
	w.prompt += uint64(n)
	w.promptBusy += dur
}

// applyStep counts a forward pass.
func (s *state) applyStep(e *event.Event) {
	r := &s.rates
	w := r.at(e.At)
	s.counts.Steps++
	w.busy += e.Dur
	if e.Prompt > 0 {
		r.prefilled = true
		r.lastPrompt = e.At
		w.prompt += uint64(e.Prompt)
		w.promptBusy += e.Dur
	} else if e.N > 0 {
		w.decodeNow += e.Dur
		w.decodeSum += uint64(e.N)
		w.decodePasses++
	}
}

// sum adds up the work of the current second and the n-1 before it.
func (r *rates) sum(now event.Time, n int64) (total work) {
	last := int64(now) / int64(time.Second)
	for _, w := range r.slot {
		if w.second > last-n {
			total.generated += w.generated
			total.prompt += w.prompt
			total.busy += w.busy
			total.promptBusy += w.promptBusy
			total.decodeNow += w.decodeNow
			total.decodeSum += w.decodeSum
			total.decodePasses += w.decodePasses
		}
	}
	return total
}

// per is n tokens in ns of work, NotYet if there was none.
func per(n uint64, ns int64) event.Reading {
	if n == 0 || ns <= 0 {
		return event.Absent(event.NotYet)
	}
	return event.From(float64(n) / (float64(ns) / second))
}
