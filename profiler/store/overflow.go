package store

import "github.com/llmtop/llmtop/profiler/event"

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

// count returns the number of requests in a state.
func (b *overflow) count(state event.State) int {
	if state == event.StateDispatched {
		return b.states[state] + b.anonymous
	}
	return b.states[state]
}

// openCount returns the number of requests that have not ended.
func (b *overflow) openCount() int { return len(b.requests) + b.anonymous }

// begin starts to count a request. It reports whether the request was not counted before.
func (b *overflow) begin(id event.RequestID, state event.State) bool {
	if len(b.requests) >= maxOverflow {
		b.hadAnonymous = true
		if state != event.StateQueued { // it may follow an event of the same request that was counted
			return false
		}
		b.anonymous++
		return true
	}
	if b.requests == nil {
		b.requests = make(map[event.RequestID]overflowRequest)
	}
	b.states[state]++
	b.requests[id] = overflowRequest{state: state}
	return true
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

// addUnlistedTokens adds k tokens of a request that is not in the list. It reports whether the session counts them: the
// request exceeded MaxOpen and has not ended.
func (r *ring) addUnlistedTokens(id event.RequestID, k int) bool {
	if r.byID[id] != nil { // it has ended
		return false
	}
	return r.overflow.update(id, event.StateDispatched, k) || r.overflow.hadAnonymous && !r.evicted.has(id)
}
