package store

import (
	"maps"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxOverflow is how many requests beyond MaxOpen are tracked by id: about 50 bytes each with the map, 3.3 MB in all.
const maxOverflow = 1 << 16

// overflow counts the open requests beyond MaxOpen: their states and generated tokens, so that the totals stay right.
type overflow struct {
	requests     map[event.RequestID]overflowRequest
	states       [event.NumStates]int // of requests
	anonymous    int                  // open requests beyond maxOverflow, whose ids are not kept; they count as running
	hadAnonymous bool                 // anonymous was ever above 0: count tokens of unknown requests as they arrive
}

// overflowRequest is a request that is counted but not measured.
type overflowRequest struct {
	state     event.State
	generated int // tokens
}

func (b *overflow) clone() overflow {
	c := *b
	c.requests = maps.Clone(b.requests)
	return c
}

// count returns the number of requests in a state.
func (b *overflow) count(state event.State) int {
	if state == event.StateDispatched {
		return b.states[state] + b.anonymous
	}
	return b.states[state]
}

// openCount returns the number of requests that have not ended.
func (b *overflow) openCount() int { return len(b.requests) + b.anonymous }

// beginOverflow counts a request that exceeds MaxOpen. It counts each request once.
func (s *state) beginOverflow(e *event.Event) {
	if p, ok := e.Data.(*event.Request); ok && p != nil && p.Probe && s.engine.Caps.Has(event.CapAggregates) {
		return // see excluded
	}
	b := &s.requests.overflow
	if len(b.requests) >= maxOverflow {
		b.hadAnonymous = true
		if e.State == event.StateQueued { // any other state may follow an event of the same request that was counted
			b.anonymous++
			s.counts.OmittedRequests++
			s.counts.Unmeasured++
		}
		return
	}
	if b.requests == nil {
		b.requests = make(map[event.RequestID]overflowRequest)
	}
	s.counts.OmittedRequests++
	s.counts.Unmeasured++
	b.states[e.State]++
	b.requests[e.Req] = overflowRequest{state: e.State}
}

// update advances the state and tokens of an overflow request. It reports whether id is one.
func (b *overflow) update(id event.RequestID, to event.State, generated int) bool {
	c, ok := b.requests[id]
	if ok {
		b.states[c.state]--
		c.state, c.generated = max(c.state, to), c.generated+generated
		b.states[c.state]++
		b.requests[id] = c
	}
	return ok
}

// remove drops a request and returns how many of its tokens have been counted, or -1 if all of them have (an anonymous
// request).
func (b *overflow) remove(id event.RequestID) (generated int) {
	c, ok := b.requests[id]
	switch {
	case ok:
		b.states[c.state]--
		delete(b.requests, id)
		return c.generated
	case b.hadAnonymous:
		b.anonymous = max(b.anonymous-1, 0)
		return -1
	}
	return 0
}

// countOverflowTokens counts k tokens of a request that is not in the ring.
func (s *state) countOverflowTokens(e *event.Event, k int) {
	b := &s.requests.overflow
	if !b.update(e.Req, event.StateDispatched, k) && (!b.hadAnonymous || s.requests.evicted.has(e.Req)) {
		return
	}
	if e.At == beforeClock { // generated before this session
		return
	}
	s.counts.GeneratedTokens += uint64(k)
	s.gapsSinceSample.tokens += uint64(k)
	s.rates.addGenerated(e.At, k)
}

// endUntracked counts the end of a request that is not in the ring: its start was dropped, or it exceeded MaxOpen.
func (s *state) endUntracked(e *event.Event) {
	if s.requests.evicted.has(e.Req) {
		return
	}
	counted := s.requests.overflow.remove(e.Req)
	s.countEnd(e.State)
	if o := outcomeOf(e); o != nil {
		if counted >= 0 {
			s.counts.GeneratedTokens += uint64(max(o.Generated-counted, 0))
		}
		s.counts.PromptTokens += uint64(o.Prompt)
		s.counts.CachedTokens += uint64(o.Cached)
		s.counts.PadTokens += uint64(o.Padding)
	}
	s.requests.evicted.add(e.Req)
}
