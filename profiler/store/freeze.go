package store

import (
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// frozen is a compact copy of the state at the start of a history segment. It shares what is never written again and
// packs distributions and counts.
type frozen struct {
	core
	requests   frozenRing
	latency    frozenLatency
	routing    frozenRouting
	aggregates frozenAggregates

	at   event.Time // of the newest event
	now  event.Time // when it was made, on the source's clock and
	wall time.Time  // on the wall clock
	size int        // approximate bytes that it does not share
}

// freezeState returns a compact copy of the state. pack compresses bytes.
func freezeState(s *state, at, now event.Time, wall time.Time, pack func([]byte) []byte) *frozen {
	f := &frozen{
		core: s.core.clone(), requests: s.requests.freeze(), latency: s.latency.freeze(),
		routing: s.routing.freeze(pack), aggregates: s.aggregates.freeze(pack),
		at: at, now: now, wall: wall,
	}
	f.active = s.active.frozen(s.requests.count(event.StateQueued)+s.requests.count(event.StateDispatched) > 0)
	if s.aggregates.running+s.aggregates.queued > 0 { // the next second that the engine reports is active: it replaces them
		f.active = nil
	}
	f.size = int(unsafe.Sizeof(*f)) + 100*len(f.counts.groups) + f.causes.size() + f.active.size() + f.machine.size() +
		f.requests.bytes + f.latency.size() + f.routing.size() + f.aggregates.size()
	return f
}

// thaw returns a state that continues from the frozen one. Ended requests get the per-token data that the ring from
// still has.
func (f *frozen) thaw(from *ring, unpack func([]byte) []byte) *state {
	return &state{
		core: f.core.clone(), requests: f.requests.thaw(from), latency: f.latency.thaw(),
		routing: f.routing.thaw(unpack), aggregates: f.aggregates.thaw(unpack),
	}
}
