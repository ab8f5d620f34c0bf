package socket

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

const (
	maxEnded = 10_000 // ended requests, 184 bytes each
	maxParts = 64     // events for the tokens of a request
)

// stateLimits limit the state for a late joiner. With its events a request takes about 1 KB, all requests take 26 MB at
// most.
var stateLimits = catchup.Limits{
	Kinds: [event.NumKinds]bool{
		event.KindEngine: true, event.KindModel: true, event.KindExperts: true, event.KindKV: true, event.KindHost: true,
		event.KindCounters: true, event.KindOps: true, event.KindSpeculation: true,
	},
	Detailed: 1024, Begin: 32, Tokens: maxParts, LeastTokens: 4,
}

// state is what readers of one engine may lack. The server's mutex guards it.
type state struct {
	catchup.State
	ended []ended // newest last
}

// ended is the last event of a request, with its event number.
type ended struct {
	event  event.Event
	number uint64
}

// apply updates the state with an event that gets the given number in the ring.
func (s *state) apply(e *event.Event, number uint64) {
	s.Apply(e, 0, 0)
	if e.Kind == event.KindRequest && e.Req != 0 && e.State.Final() {
		if len(s.ended) == maxEnded {
			s.ended = slices.Delete(s.ended, 0, maxEnded/4)
		}
		s.ended = append(s.ended, ended{*e, number})
	}
}

// events returns the full state for a late joiner, except the engine, which the hello has.
func (s *state) events() (out []event.Event) {
	for _, e := range s.All() {
		if e.Kind != event.KindEngine {
			out = append(out, e.Event)
		}
	}
	return out
}

// since returns what a reader may have missed between two event numbers: the live requests, the ends of others, and the
// newest events of cumulative kinds. It does not repeat tokens: their sum comes with the end of the request.
func (s *state) since(from, to uint64) (out []event.Event) {
	for k := range event.NumKinds {
		if e := s.Newest(0, k); e != nil {
			out = append(out, *e)
		}
	}
	for _, x := range s.ended {
		if x.number >= from && x.number < to {
			out = append(out, x.event)
		}
	}
	for e := range s.Requests() {
		out = append(out, e.Event)
	}
	return out
}
