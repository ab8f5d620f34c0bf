// Package catchup keeps what a late joiner needs: the latest samples of each engine, the stages of its model load, and
// the running requests with their tokens so far. A new reader of an event socket is one, and so is a reader that starts
// in the middle of a recording.
package catchup

import (
	"iter"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// The limits that all states share.
const (
	MaxLive = 10_000 // running requests; others are only counted: see State.Untracked

	maxLoad = 64 // stages of a model load
	least   = 4  // events of a request besides its tokens, however many requests there are
)

// Limits are the limits of a State. Up to Detailed requests keep the most events each; more share the same total.
type Limits struct {
	Kinds [event.NumKinds]bool // kinds whose newest event replaces the previous ones

	Detailed    int
	Begin       int // events of a request besides its tokens
	Tokens      int // events that represent the tokens of a request after the first
	LeastTokens int // the same, however many requests there are
	Chunk       int // tokens that one of them represents at most; 0: no limit. Tokens beyond Tokens*Chunk are omitted

	// UntilToken keeps all stages of a request up to its first token. Otherwise its stages are kept until it ends,
	// except those of single layers and pauses.
	UntilToken bool
}

// Entry is an event with its engine and the time when it arrived. It has 192 bytes.
type Entry struct {
	event.Event
	Arrived event.Time
	Engine  int
}

// State is what a late joiner needs. Its Limits must be set. It is not safe for concurrent use.
type State struct {
	Limits    Limits
	engines   []engine
	live      int        // running requests of all engines
	order     []*request // oldest first, nil for ended requests
	untracked uint64
}

// engine is the state of one engine.
type engine struct {
	latest [event.NumKinds]*Entry
	load   []Entry
	live   map[event.RequestID]*request
}

// request is a running request.
type request struct {
	engine int
	id     event.RequestID
	begin  []Entry
	parts  [2]struct { // its tokens: reasoning and what follows it, or all in the first
		first, last Entry // N of first is 0 before its first token
		n           int64 // tokens after those of first
	}
	place int // index in State.order
}

// Apply updates the state with an event of an engine.
func (s *State) Apply(e *event.Event, arrived event.Time, of int) {
	if e.Kind >= event.NumKinds {
		return
	}
	for len(s.engines) <= of {
		s.engines = append(s.engines, engine{})
	}
	switch {
	case s.Limits.Kinds[e.Kind] && e.Data != nil:
		latest := &s.engines[of].latest[e.Kind]
		if *latest == nil {
			*latest = new(Entry)
		}
		**latest = Entry{*e, arrived, of}
	case e.Kind == event.KindRequest:
		s.request(e, arrived, of)
	case e.Kind == event.KindStage:
		s.stage(e, arrived, of)
	case e.Kind == event.KindToken:
		if r := s.engines[of].live[e.Req]; r != nil {
			r.token(e, arrived)
		}
	}
}

func (s *State) request(e *event.Event, arrived event.Time, of int) {
	r := s.engines[of].live[e.Req]
	switch {
	case e.Req == 0:
		return
	case e.State.Final():
		if r != nil {
			delete(s.engines[of].live, r.id)
			s.order[r.place] = nil
			s.live--
		} else if s.untracked > 0 {
			s.untracked--
		}
		return
	case r == nil && s.live >= MaxLive:
		if e.State == event.StateQueued { // other states may be of a request that is already counted
			s.untracked++
		}
		return
	case r == nil:
		r = s.track(of, e.Req)
	}
	r.add(e, arrived, s.Limits.Begin)
}

// track adds a request.
func (s *State) track(of int, id event.RequestID) *request {
	live := &s.engines[of].live
	if *live == nil {
		*live = make(map[event.RequestID]*request)
	}
	if len(s.order) >= 2*MaxLive {
		s.order = slices.DeleteFunc(s.order, func(r *request) bool { return r == nil })
		for i, r := range s.order {
			r.place = i
		}
	}
	r := &request{engine: of, id: id, place: len(s.order)}
	(*live)[id] = r
	s.live++
	s.order = append(s.order, r)
	return r
}

// stage keeps the stages of the last load, and some of requests: see Limits.UntilToken.
func (s *State) stage(e *event.Event, arrived event.Time, of int) {
	if e.Req == 0 {
		load := &s.engines[of].load
		*load = event.AddLoadStage(*load, Entry{*e, arrived, of}, maxLoad, func(e *Entry) event.LoadStage { return e.LoadStage() })
		return
	}
	r := s.engines[of].live[e.Req]
	if r == nil {
		return
	}
	keep := e.Layer < 0 && e.Stage != event.StagePace
	if s.Limits.UntilToken {
		keep = r.parts[0].first.N == 0
	}
	if keep {
		r.add(e, arrived, s.each(s.Limits.Begin, least))
	}
}

// each returns how many events one request may keep: most, or fewer if there are many requests, but at least least.
func (s *State) each(most, least int) int {
	return min(max(most*s.Limits.Detailed/max(s.live, 1), least), most)
}

func (r *request) add(e *event.Event, arrived event.Time, most int) {
	if len(r.begin) < most {
		r.begin = append(r.begin, Entry{*e, arrived, r.engine})
	}
}

func (r *request) token(e *event.Event, arrived event.Time) {
	n, p := max(e.N, 1), &r.parts[0]
	if r.parts[1].first.N > 0 || p.first.Reasoning > 0 && e.Reasoning < n {
		p = &r.parts[1]
	}
	if p.first.N == 0 {
		p.first = Entry{*e, arrived, r.engine}
		p.first.N = n
		return
	}
	p.last, p.n = Entry{*e, arrived, r.engine}, p.n+int64(n)
}

// Untracked returns how many running requests the state lacks.
func (s *State) Untracked() uint64 { return s.untracked }

// Newest returns the newest event of a kind in Limits.Kinds; nil if there was none.
func (s *State) Newest(of int, kind event.Kind) *event.Event {
	if of >= len(s.engines) || s.engines[of].latest[kind] == nil {
		return nil
	}
	return &s.engines[of].latest[kind].Event
}

// Requests iterates over the states of the running requests, oldest request first.
func (s *State) Requests() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, r := range s.order {
			for i := 0; r != nil && i < len(r.begin); i++ {
				if e := &r.begin[i]; e.Kind == event.KindRequest && !yield(e) {
					return
				}
			}
		}
	}
}

// All returns the full state: of each engine the newest events by kind and the stages of the model load, then the running
// requests with their tokens. The tokens of a request after the first are merged into few events, evenly spaced up to
// the newest one, without ids and text.
func (s *State) All() (out []Entry) {
	for i := range s.engines {
		for _, e := range s.engines[i].latest {
			if e != nil {
				out = append(out, *e)
			}
		}
		out = append(out, s.engines[i].load...)
	}
	most := s.each(s.Limits.Tokens, s.Limits.LeastTokens)
	for _, r := range s.order {
		if r == nil {
			continue
		}
		out = append(out, r.begin...)
		for i := range r.parts {
			p := &r.parts[i]
			if p.first.N == 0 {
				break
			}
			out = append(out, p.first)
			for _, e := range Spread(p.first.At, p.last.At, p.n, p.first.Index+p.first.N, s.Limits.Chunk, most) {
				if e.Req, e.Step = r.id, p.last.Step; p.first.Reasoning == p.first.N {
					e.Reasoning = e.N
				}
				out = append(out, Entry{e, p.last.Arrived, r.engine})
			}
		}
	}
	return out
}

// Spread returns events that represent n tokens after from and up to to, evenly spaced, at most most events of at most
// chunk tokens each. With chunk 0 they represent all tokens.
func Spread(from, to event.Time, n int64, index int32, chunk, most int) (out []event.Event) {
	parts := min(n, int64(most))
	for i, done := int64(1), int64(0); i <= parts && done < n; i++ {
		k := n*i/parts - done
		if chunk > 0 {
			k = min(n-done, int64(chunk))
		}
		done += k
		at := from + event.Time(float64(to-from)*float64(done)/float64(n))
		out = append(out, event.Event{Kind: event.KindToken, ID: -1, Layer: -1, At: at, N: int32(k), Index: index})
		index += int32(k)
	}
	return out
}
