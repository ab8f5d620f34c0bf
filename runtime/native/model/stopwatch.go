package model

import (
	"time"

	"github.com/llmtop/llmtop/runtime"
)

// stopwatch splits the time of a batch into parts. It counts in ticks, which are cheap to read, and learns from the clock at the
// beginning and the end how long one is, so that the parts add up to the time that passed.
type stopwatch struct {
	began time.Time
	first int64 // ticks at the beginning
	last  int64 // ticks at the last border between parts
}

func (s *stopwatch) start() {
	s.began = time.Now()
	s.first = ticks()
	s.last = s.first
}

// lap is the number of ticks since the last border. Counters of two processors may differ by a little; it is never negative.
func (s *stopwatch) lap() int64 {
	t := ticks()
	d := max(t-s.last, 0)
	s.last = t
	return d
}

// stop turns the ticks in t into ns.
func (s *stopwatch) stop(t *runtime.BatchTime) {
	passed := ticks() - s.first
	if passed <= 0 {
		return
	}
	ns := float64(time.Since(s.began)) / float64(passed)
	scale := func(part *int64) { *part = int64(float64(*part) * ns) }
	scale(&t.Embed)
	scale(&t.Head)
	for i := range t.Layers {
		l := &t.Layers[i]
		scale(&l.Attention)
		scale(&l.Router)
		scale(&l.Experts)
	}
}
