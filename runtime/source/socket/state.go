package socket

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// Limits of the state; an event has 176 bytes.
const (
	// maxLive limits the live requests kept, the same as in a store. Those beyond are only counted: see state.untracked.
	// With their events they take 24 MB at most, typically 1 KB each.
	maxLive    = 10_000
	fewLive    = 1024   // up to this many have maxBegin events each; more share the same total
	maxBegin   = 32     // events of a request besides its tokens
	leastBegin = 4      // the same, with many requests
	maxLoad    = 64     // stages of the model's load
	maxEnded   = 10_000 // ended requests, 184 bytes each
	maxParts   = 64     // token events of a request
	leastParts = 4      // the same, with many requests
)

// state is what a late joiner needs: the engine, the model, cumulative counts, the last samples, and the live requests.
// The server's mutex guards it.
type state struct {
	latest    [event.NumKinds]event.Event // of kinds whose newest event replaces earlier ones; Data nil: none yet
	load      []event.Event
	live      map[event.RequestID]*live
	order     []*live // oldest first, nil where one has ended
	untracked uint64  // live requests that are not kept; a late joiner misses this many
	ended     []ended // newest last
}

// live is a request that has not ended.
type live struct {
	begin       []event.Event
	first, last event.Event // token events
	tokens      int64       // tokens after those of first
	place       int         // index in order
}

// ended is the last event of a request, with its event number.
type ended struct {
	event  event.Event
	number uint64
}

// apply updates the state with an event that gets the given number in the ring.
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
		} else if s.untracked > 0 {
			s.untracked--
		}
		if len(s.ended) == maxEnded {
			s.ended = slices.Delete(s.ended, 0, maxEnded/4)
		}
		s.ended = append(s.ended, ended{*e, number})
		return
	case r == nil && len(s.live) >= maxLive:
		if e.State == event.StateQueued { // any other may belong to a counted request
			s.untracked++
		}
		return
	case r == nil:
		r = s.begin(e.Req)
	}
	r.add(e, maxBegin)
}

// begin starts to track a request.
func (s *state) begin(id event.RequestID) *live {
	if s.live == nil {
		s.live = make(map[event.RequestID]*live)
	}
	if len(s.order) >= 2*maxLive {
		s.order = slices.DeleteFunc(s.order, func(r *live) bool { return r == nil })
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

// stage keeps the stages of the last load, and the stages of requests except those of single layers.
func (s *state) stage(e *event.Event) {
	if e.Req != 0 {
		if r := s.live[e.Req]; r != nil && e.Layer < 0 && e.Stage != event.StagePace {
			r.add(e, s.each(maxBegin, leastBegin))
		}
		return
	}
	s.load = event.AddLoadStage(s.load, *e, maxLoad, (*event.Event).LoadStage)
}

// each returns how many events one request may keep: few, or less if there are many requests.
func (s *state) each(few, least int) int {
	return min(max(few*fewLive/max(len(s.live), 1), least), few)
}

func (r *live) add(e *event.Event, most int) {
	if len(r.begin) < most {
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

// events returns the full state, for a late joiner.
func (s *state) events() (out []event.Event) {
	for _, k := range []event.Kind{event.KindModel, event.KindExperts, event.KindKV, event.KindHost, event.KindCounters, event.KindOps} {
		if s.latest[k].Data != nil {
			out = append(out, s.latest[k])
		}
	}
	out = append(out, s.load...)
	parts := s.each(maxParts, leastParts)
	for _, r := range s.order {
		if r != nil {
			out = append(out, r.begin...)
			out = r.appendTokens(out, int64(parts))
		}
	}
	return out
}

// since returns what a reader may have missed between two event numbers: the live requests, the ends of others, and the
// newest events of cumulative kinds. It does not repeat tokens: their sum comes with the end of the request.
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

// appendTokens appends the tokens so far: the first one as it was, and the others in at most most events, evenly spaced
// up to the newest token, without ids and text.
func (r *live) appendTokens(out []event.Event, most int64) []event.Event {
	if r.first.N == 0 {
		return out
	}
	out = append(out, r.first)
	parts := min(r.tokens, most)
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
