package trace

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// The bounds of the state that a segment begins with, each arrival 192 bytes.
const (
	maxLive   = 1024 // requests that have not ended, of all sources; the oldest is forgotten: with maxBegin events each at most 25 MB
	maxBegin  = 128  // events of a request before its first token
	maxLoad   = 64   // stages of a model's load
	tokenStep = 512  // tokens that one event may stand for
	maxSpread = 128  // events that stand for the tokens of a request: of one with more, the rest is known when it ends
)

// state is what a reader that begins in the middle must know: the engine, the model, cumulative counts, the last samples, and the
// requests that have not ended. It does not repeat each of their tokens.
type state struct {
	sources []sourceState
	live    map[liveKey]*liveRequest
	order   []*liveRequest // oldest first
}

// sourceState is what must be known of one engine.
type sourceState struct {
	latest [event.NumKinds]*arrival // of the kinds of which the newest event replaces those before
	load   []arrival
}

// liveKey tells a request from those of other engines.
type liveKey struct {
	source int
	id     event.RequestID
}

// liveRequest is a request that has not ended.
type liveRequest struct {
	liveKey
	begin  []arrival
	first  *arrival
	last   arrival // newest token
	tokens int64   // after those of the first event
}

// apply follows an event.
func (s *state) apply(a *arrival) {
	for len(s.sources) <= a.source {
		s.sources = append(s.sources, sourceState{})
	}
	switch a.Kind {
	case event.KindEngine, event.KindModel, event.KindExperts, event.KindKV, event.KindHost, event.KindCounters, event.KindOps, event.KindLost,
		event.KindReport:
		kept := *a
		s.sources[a.source].latest[a.Kind] = &kept
	case event.KindRequest:
		s.request(a)
	case event.KindStage:
		s.stage(a)
	case event.KindToken:
		if r := s.live[keyOf(a)]; r != nil {
			r.token(a)
		}
	}
}

func keyOf(a *arrival) liveKey { return liveKey{a.source, a.Req} }

func (s *state) request(a *arrival) {
	r := s.live[keyOf(a)]
	if a.State.Final() {
		if r != nil {
			s.forget(r)
		}
		return
	}
	if a.Req == 0 {
		return
	}
	if r == nil {
		if len(s.order) >= maxLive {
			s.forget(s.order[0])
		}
		if s.live == nil {
			s.live = make(map[liveKey]*liveRequest)
		}
		r = &liveRequest{liveKey: keyOf(a)}
		s.live[r.liveKey] = r
		s.order = append(s.order, r)
	}
	r.add(a)
}

func (s *state) forget(r *liveRequest) {
	delete(s.live, r.liveKey)
	s.order = slices.DeleteFunc(s.order, func(o *liveRequest) bool { return o == r })
}

// stage keeps the stages of the last load and those of requests before their first token.
func (s *state) stage(a *arrival) {
	if a.Req != 0 {
		if r := s.live[keyOf(a)]; r != nil && r.first == nil {
			r.add(a)
		}
		return
	}
	of := &s.sources[a.source]
	of.load = event.KeepLoad(of.load, *a, maxLoad, func(a *arrival) event.LoadStage { return a.LoadStage() })
}

func (r *liveRequest) add(a *arrival) {
	if len(r.begin) < maxBegin {
		r.begin = append(r.begin, *a)
	}
}

func (r *liveRequest) token(a *arrival) {
	if r.first == nil {
		first := *a
		r.first = &first
		return
	}
	r.last = *a
	r.tokens += int64(max(a.N, 1))
}

// events are the state in the order of arrival. Tokens after the first of a request are few events for many, evenly spaced up to the
// newest one, without ids and text.
func (s *state) events() []arrival {
	var out []arrival
	for i := range s.sources {
		for _, a := range s.sources[i].latest {
			if a != nil {
				out = append(out, *a)
			}
		}
		out = append(out, s.sources[i].load...)
	}
	for _, r := range s.order {
		out = append(out, r.begin...)
		if r.first != nil {
			out = append(append(out, *r.first), r.rest()...)
		}
	}
	slices.SortStableFunc(out, func(a, b arrival) int { return int(min(max(a.at-b.at, -1), 1)) })
	return out
}

// rest stands for the tokens after the first event.
func (r *liveRequest) rest() (out []arrival) {
	for _, e := range spread(r.first.At, r.last.At, r.tokens, r.first.Index+max(r.first.N, 1), tokenStep) {
		e.Req, e.Step = r.id, r.last.Step
		out = append(out, arrival{r.last.at, e, r.source})
	}
	return out
}

// spread is n tokens after from and up to to, of which nothing but their number is known, so many of them an event.
func spread(from, to event.Time, n int64, index int32, chunk int64) (out []event.Event) {
	for done := int64(0); done < n && len(out) < maxSpread; {
		k := min(n-done, chunk, tokenStep)
		done += k
		at := from + event.Time(float64(to-from)*float64(done)/float64(n))
		out = append(out, event.Event{Kind: event.KindToken, ID: -1, Layer: -1, At: at, N: int32(k), Index: index})
		index += int32(k)
	}
	return out
}
