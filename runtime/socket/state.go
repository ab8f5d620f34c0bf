package socket

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// The bounds of the state, each event 176 bytes.
const (
	maxLive  = 1024 // requests that have not ended; the oldest is forgotten. With maxBegin events each at most 5.8 MB
	maxBegin = 32   // events of a request besides its tokens
	maxLoad  = 64   // stages of the model's load
	maxEnded = 256  // requests that have ended
	maxParts = 64   // events that tell of a request's tokens
)

// state is what a reader that comes late must know: the engine, the model, cumulative counts, the last samples, and the requests that
// have not ended. The server's mutex guards it.
type state struct {
	latest [event.NumKinds]event.Event // of the kinds of which the newest event replaces those before; Data nil if there was none
	load   []event.Event
	live   map[event.RequestID]*live
	order  []*live // oldest first, nil where one has ended
	oldest int     // in order; all before it have ended
	ended  []ended // newest last
}

// live is a request that has not ended.
type live struct {
	begin       []event.Event
	first, last event.Event // tokens
	tokens      int64       // after those of the first event
	place       int         // in order
}

// ended is the last event of a request, and its number among all events.
type ended struct {
	event  event.Event
	number uint64
}

// apply follows an event, which will be the given one of the ring.
func (s *state) apply(e *event.Event, number uint64) {
	switch e.Kind {
	case event.KindEngine, event.KindModel, event.KindExperts, event.KindKV, event.KindHost, event.KindCounters, event.KindOps:
		s.latest[e.Kind] = *e
	case event.KindRequest:
		s.request(e, number)
	case event.KindStage:
		s.stage(e)
	case event.KindToken:
		if r := s.live[e.Req]; r != nil {
			r.token(e)
		}
	}
}

func (s *state) request(e *event.Event, number uint64) {
	r := s.live[e.Req]
	switch {
	case e.Req == 0:
		return
	case e.State.Final():
		if r != nil {
			s.forget(e.Req, r)
		}
		if len(s.ended) == maxEnded {
			s.ended = slices.Delete(s.ended, 0, maxEnded/4)
		}
		s.ended = append(s.ended, ended{*e, number})
		return
	case r == nil:
		r = s.begin(e.Req)
	}
	r.add(e)
}

// begin makes room for a request.
func (s *state) begin(id event.RequestID) *live {
	if s.live == nil {
		s.live = make(map[event.RequestID]*live)
	}
	if len(s.live) >= maxLive {
		for s.order[s.oldest] == nil {
			s.oldest++
		}
		r := s.order[s.oldest]
		s.forget(r.begin[0].Req, r)
	}
	if len(s.order) >= 2*maxLive {
		s.order, s.oldest = slices.DeleteFunc(s.order, func(r *live) bool { return r == nil }), 0
		for i, r := range s.order {
			r.place = i
		}
	}
	r := &live{place: len(s.order)}
	s.order = append(s.order, r)
	s.live[id] = r
	return r
}

func (s *state) forget(id event.RequestID, r *live) {
	s.order[r.place] = nil
	delete(s.live, id)
}

// stage keeps the stages of the last load and those of requests but not of single layers.
func (s *state) stage(e *event.Event) {
	if e.Req != 0 {
		if r := s.live[e.Req]; r != nil && e.Layer < 0 && e.Stage != event.StagePace {
			r.add(e)
		}
		return
	}
	s.load = event.KeepLoad(s.load, *e, maxLoad, (*event.Event).LoadStage)
}

func (r *live) add(e *event.Event) {
	if len(r.begin) < maxBegin {
		r.begin = append(r.begin, *e)
	}
}

func (r *live) token(e *event.Event) {
	if r.first.N == 0 {
		r.first = *e
		r.first.N = max(e.N, 1)
		return
	}
	r.last = *e
	r.tokens += int64(max(e.N, 1))
}

// events are the whole state, for a reader that knows nothing.
func (s *state) events() (out []event.Event) {
	for _, k := range []event.Kind{event.KindModel, event.KindExperts, event.KindKV, event.KindHost, event.KindCounters, event.KindOps} {
		if s.latest[k].Data != nil {
			out = append(out, s.latest[k])
		}
	}
	out = append(out, s.load...)
	for _, r := range s.order {
		if r != nil {
			out = append(out, r.begin...)
			out = r.appendTokens(out)
		}
	}
	return out
}

// since are what a reader may have missed of the events from one number up to another: which requests are live, how those that are not
// have ended, and all that is cumulative. Tokens are not told again: their sum comes with the end of the request.
func (s *state) since(from, to uint64) (out []event.Event) {
	for k := range event.NumKinds {
		if s.latest[k].Data != nil {
			out = append(out, s.latest[k])
		}
	}
	for _, x := range s.ended {
		if x.number >= from && x.number < to {
			out = append(out, x.event)
		}
	}
	for _, r := range s.order {
		if r == nil {
			continue
		}
		for _, e := range r.begin {
			if e.Kind == event.KindRequest {
				out = append(out, e)
			}
		}
	}
	return out
}

// appendTokens appends the tokens so far: the first one as it was, the others evenly spaced up to the newest one, without ids and text.
func (r *live) appendTokens(out []event.Event) []event.Event {
	if r.first.N == 0 {
		return out
	}
	out = append(out, r.first)
	parts := min(r.tokens, maxParts)
	index, span := int64(r.first.Index)+int64(r.first.N), r.last.At-r.first.At
	for i, done := int64(1), int64(0); i <= parts; i++ {
		n := r.tokens*i/parts - done
		done += n
		out = append(out, event.Event{
			Kind: event.KindToken, Req: r.first.Req, ID: -1, Layer: -1, N: int32(n), Index: int32(index), Step: r.last.Step,
			At: r.first.At + event.Time(float64(span)*float64(done)/float64(r.tokens)),
		})
		index += n
	}
	return out
}
