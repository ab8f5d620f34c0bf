package recording

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// The limits on the state at the start of a segment; an arrival takes 192 bytes.
const (
	maxLive    = 10_000 // running requests of all engines; others are counted, and a log line reports them
	fullDetail = 256    // up to this many requests have all events below; more requests share the same total
	maxBegin   = 128    // events of a request before its first token; 30 MB for all requests together
	leastBegin = 4      // minimum of the same for each of many requests
	maxLoad    = 64     // stages of a model load
	tokenStep  = 512    // most tokens that one event represents
	maxSpread  = 128    // most events that represent the tokens of a request; tokens beyond them are counted when the request ends
)

// state is what a reader needs that starts in the middle of a recording: the engine, the model, cumulative counts, the
// latest samples, and the running requests. It does not repeat their single tokens.
type state struct {
	engines   []engineState
	live      map[liveKey]*liveRequest
	order     []*liveRequest // oldest first, nil for ended requests
	untracked int            // running requests that are not in live
}

// engineState is the state of one engine.
type engineState struct {
	latest [event.NumKinds]*arrival // of the kinds whose newest event replaces the previous ones
	load   []arrival
}

// liveKey identifies a request among those of all engines.
type liveKey struct {
	engine int
	id     event.RequestID
}

// liveRequest is a running request.
type liveRequest struct {
	liveKey
	begin  []arrival
	first  *arrival
	last   arrival // newest token
	tokens int64   // tokens after the first event
	place  int     // index in state.order
}

// apply updates the state with an event.
func (s *state) apply(a *arrival) {
	for len(s.engines) <= a.engine {
		s.engines = append(s.engines, engineState{})
	}
	switch a.Kind {
	case event.KindEngine, event.KindModel, event.KindExperts, event.KindKV, event.KindHost, event.KindCounters, event.KindOps, event.KindDrops,
		event.KindAggregates:
		kept := *a
		s.engines[a.engine].latest[a.Kind] = &kept
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

func keyOf(a *arrival) liveKey { return liveKey{a.engine, a.Req} }

func (s *state) request(a *arrival) {
	r := s.live[keyOf(a)]
	if a.State.Final() {
		if r != nil {
			s.remove(r)
		} else {
			s.untracked = max(s.untracked-1, 0)
		}
		return
	}
	if a.Req == 0 {
		return
	}
	if r == nil {
		if len(s.live) >= maxLive {
			if a.State == event.StateQueued { // other states may be of a request that is already counted
				s.untracked++
			}
			return
		}
		r = s.track(keyOf(a))
	}
	r.add(a, maxBegin)
}

// track adds a request.
func (s *state) track(key liveKey) *liveRequest {
	if s.live == nil {
		s.live = make(map[liveKey]*liveRequest)
	}
	if len(s.order) >= 2*maxLive {
		s.order = slices.DeleteFunc(s.order, func(r *liveRequest) bool { return r == nil })
		for i, r := range s.order {
			r.place = i
		}
	}
	r := &liveRequest{liveKey: key, place: len(s.order)}
	s.live[key] = r
	s.order = append(s.order, r)
	return r
}

// remove removes a request that has ended.
func (s *state) remove(r *liveRequest) {
	delete(s.live, r.liveKey)
	s.order[r.place] = nil
}

// eventLimit returns how many events a request may have: few if there are few requests, at least least.
func (s *state) eventLimit(few, least int) int {
	return min(max(few*fullDetail/max(len(s.live), 1), least), few)
}

// stage keeps the stages of the last load, and those of requests before their first token.
func (s *state) stage(a *arrival) {
	if a.Req != 0 {
		if r := s.live[keyOf(a)]; r != nil && r.first == nil {
			r.add(a, s.eventLimit(maxBegin, leastBegin))
		}
		return
	}
	engine := &s.engines[a.engine]
	engine.load = event.AddLoadStage(engine.load, *a, maxLoad, func(a *arrival) event.LoadStage { return a.LoadStage() })
}

func (r *liveRequest) add(a *arrival, most int) {
	if len(r.begin) < most {
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

// events returns the state in the order of arrival. The tokens of a request after the first are merged into few events,
// evenly spaced up to the newest one, without ids and text.
func (s *state) events() []arrival {
	var out []arrival
	for i := range s.engines {
		for _, a := range s.engines[i].latest {
			if a != nil {
				out = append(out, *a)
			}
		}
		out = append(out, s.engines[i].load...)
	}
	parts := s.eventLimit(maxSpread, 1)
	for _, r := range s.order {
		if r == nil {
			continue
		}
		out = append(out, r.begin...)
		if r.first != nil {
			out = append(append(out, *r.first), r.remainingTokens(parts)...)
		}
	}
	slices.SortStableFunc(out, func(a, b arrival) int { return int(min(max(a.at-b.at, -1), 1)) })
	return out
}

// remainingTokens returns events that represent the tokens after the first event, most of them at most.
func (r *liveRequest) remainingTokens(most int) (out []arrival) {
	for _, e := range spread(r.first.At, r.last.At, r.tokens, r.first.Index+max(r.first.N, 1), tokenStep, most) {
		e.Req, e.Step = r.id, r.last.Step
		out = append(out, arrival{r.last.at, e, r.engine})
	}
	return out
}

// spread returns events that represent n tokens after from and up to to, evenly spaced, chunk tokens per event, at most
// most events.
func spread(from, to event.Time, n int64, index int32, chunk int64, most int) (out []event.Event) {
	for done := int64(0); done < n && len(out) < most; {
		k := min(n-done, chunk, tokenStep)
		done += k
		at := from + event.Time(float64(to-from)*float64(done)/float64(n))
		out = append(out, event.Event{Kind: event.KindToken, ID: -1, Layer: -1, At: at, N: int32(k), Index: index})
		index += int32(k)
	}
	return out
}
