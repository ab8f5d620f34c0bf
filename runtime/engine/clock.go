package engine

import (
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Clock is a monotonic clock. All sources of a session share one, so that their timestamps are comparable.
type Clock struct {
	epoch time.Time
	ahead *atomic.Int64 // see Reach; nil: it follows time alone
}

// NewClock returns a clock that starts at 0 now.
func NewClock() Clock { return Clock{epoch: time.Now()} }

// NewClockSince returns a clock that started the given duration ago, so that earlier events have no negative times.
func NewClockSince(before time.Duration) Clock { return Clock{epoch: time.Now().Add(-before)} }

// NewClockAhead returns a clock that starts at 0 now, and is never behind what Reach was called with: for events that may
// come faster than they happened.
func NewClockAhead() Clock { return Clock{time.Now(), new(atomic.Int64)} }

// Now returns the current time on the clock.
func (c Clock) Now() event.Time {
	now := time.Since(c.epoch)
	if c.ahead != nil {
		now = max(now, time.Duration(c.ahead.Load()))
	}
	return event.Time(now)
}

// Reach moves the clock on to t, unless it is past that. One goroutine calls it, and only for a clock of NewClockAhead.
func (c Clock) Reach(t event.Time) { c.ahead.Store(max(c.ahead.Load(), int64(t))) }

// At converts t to the time on the clock.
func (c Clock) At(t time.Time) event.Time { return event.Time(t.Sub(c.epoch)) }

// Epoch returns the wall clock time at 0, in Unix ns.
func (c Clock) Epoch() int64 { return c.epoch.UnixNano() }

// slab cuts slices from large arrays, so that the data of hundreds of tokens costs one allocation. No element is handed
// out twice. An array stays alive until the last event that refers to it is collected.
type slab[T any] struct {
	free []T
	size int // elements allocated at a time
}

// take returns n zero elements.
func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		s.free = make([]T, max(n, s.size))
	}
	piece := s.free[:n:n]
	s.free = s.free[n:]
	return piece
}
