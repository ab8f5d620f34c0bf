package model

import (
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
)

// stopwatch splits the time of a batch into parts. It counts ticks, which are cheap to read, and reads the clock at the
// start and the end to find the length of a tick, so that the parts add up to the elapsed time.
type stopwatch struct {
	began time.Time
	first int64 // ticks at the start
	last  int64 // ticks at the last border between parts
}

func (s *stopwatch) start() {
	s.began = time.Now()
	s.first = ticks()
	s.last = s.first
}

// lap returns the number of ticks since the last border. It is never negative, although counters of two cores may
// differ a little.
func (s *stopwatch) lap() int64 {
	t := ticks()
	d := max(t-s.last, 0)
	s.last = t
	return d
}

// stop converts the ticks in t to ns.
func (s *stopwatch) stop(t *engine.BatchTime) {
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
