package runtime

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Clock is a monotonic clock. All sources of one session share one, so that their stamps compare.
type Clock struct{ epoch time.Time }

// NewClock starts a clock at 0.
func NewClock() Clock { return Clock{time.Now()} }

// NewClockSince starts a clock that has run for so long already, for events from before the session began: no time is below 0.
func NewClockSince(before time.Duration) Clock { return Clock{time.Now().Add(-before)} }

// Now is the time on the clock.
func (c Clock) Now() event.Time { return event.Time(time.Since(c.epoch)) }

// At is t on the clock.
func (c Clock) At(t time.Time) event.Time { return event.Time(t.Sub(c.epoch)) }

// Epoch is the wall clock at 0, in Unix ns.
func (c Clock) Epoch() int64 { return c.epoch.UnixNano() }

// slab hands out pieces of large arrays, so that what events refer to costs one allocation in hundreds of tokens.
// A piece is never handed out twice; an array lives until the last event that refers to it is gone.
type slab[T any] struct {
	free []T
	size int // elements allocated at a time
}

// take is n zero elements.
func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		s.free = make([]T, max(n, s.size))
	}
	piece := s.free[:n:n]
	s.free = s.free[n:]
	return piece
}
