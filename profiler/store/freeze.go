package store

import (
	"maps"
	"slices"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// The bounds of a frozen state.
const (
	// maxFrozenDetail is how many bytes of tokens, gaps and texts of requests that had not ended it keeps. The newest come first; of the
	// others only the last frozenTokens are kept.
	maxFrozenDetail = 256 << 10
	frozenTokens    = 32
)

// frozen is a state that is kept at little cost: it shares what is never written again, and holds distributions packed. Of requests that
// had ended it keeps what is not per token; the rest is there for as long as the store has it.
type frozen struct {
	at       event.Time // of the newest event
	now      event.Time // when it was made, on both clocks
	wall     time.Time
	state    state // without requests, distributions and picks
	requests []frozenRequest
	windows  [8]*metric.PackedWindowed
	picks    *frozenPicks
	told     *frozenTold
	reported *frozenReported
	size     int // bytes that it does not share, about
}

// frozenRequest is a request that had ended, or one that had not.
type frozenRequest struct {
	slim *Request
	live *live // without its distribution
	itl  *metric.Packed
}

// freeze keeps the state.
func (s *state) freeze(at, now event.Time, wall time.Time, pack func([]byte) []byte) *frozen {
	f := &frozen{at: at, now: now, wall: wall, state: *s, size: int(unsafe.Sizeof(frozen{}))}
	c := &f.state
	c.onRequest = nil
	c.load, c.log, c.host.Series = slices.Clip(s.load), slices.Clip(s.log), slices.Clip(s.host.Series)
	c.rates.points, c.latency.stalls, c.latency.series = slices.Clip(s.rates.points), slices.Clip(s.latency.stalls), slices.Clip(s.latency.series)
	c.groups, c.judge = nil, s.judge.Clone()
	c.groups = cloneGroups(s.groups)
	c.latency.spreads.own()
	for i, w := range s.latency.all() {
		f.windows[i] = w.Pack()
		f.size += f.windows[i].Size()
	}
	c.latency.distributions = nil
	c.requests = ring{past: slices.Clip(s.requests.past), gone: s.requests.gone.clone()}
	f.size += 100*len(c.groups) + 40*len(c.requests.gone.order)
	f.freezeRequests(s.requests.list)
	f.reported, c.reported = s.reported.freeze(pack), nil
	f.size += f.reported.size()
	if s.experts != nil {
		f.picks = s.experts.freeze(pack)
		f.size += len(f.picks.packed)
		c.experts = nil
	}
	if c.told = nil; s.told != nil {
		if f.told = s.told.freeze(pack); f.told == nil {
			c.untold = true
		} else {
			f.size += len(f.told.packed)
		}
	}
	return f
}

func cloneGroups(groups map[string]*groupSum) map[string]*groupSum {
	out := make(map[string]*groupSum, len(groups))
	for name, g := range groups {
		sum := *g
		out[name] = &sum
	}
	return out
}

func (g *gone) clone() gone { return gone{maps.Clone(g.counted), slices.Clone(g.order)} }

// own makes the spread that is still written one of its own.
func (p *spreads) own() {
	w := &p.slot[p.second%spreadSlots]
	if w.spread != nil {
		spread := *w.spread
		w.spread = &spread
	}
}

// freezeRequests keeps the requests of the ring, oldest first.
func (f *frozen) freezeRequests(list []*live) {
	f.requests = make([]frozenRequest, len(list))
	detail := 0
	for i, l := range slices.Backward(list) {
		r := &f.requests[i]
		f.size += int(unsafe.Sizeof(*r))
		if l.done != nil {
			if l.slim == nil { // shared by all that keep it from now on
				f.size += int(unsafe.Sizeof(Request{}))
			}
			r.slim = l.slimmed()
			continue
		}
		r.itl, r.live = l.itl.Pack(), l.clone()
		r.live.itl = nil
		if detail += r.live.weight(); detail > maxFrozenDetail {
			r.live.shorten(frozenTokens)
		}
		f.size += int(unsafe.Sizeof(live{})) + r.live.weight() + r.itl.Size()
	}
}

// clone is a request that has not ended and shares nothing that will be written again.
func (l *live) clone() *live {
	c := *l
	v := &c.view
	v.Parts, v.Layers = slices.Clone(v.Parts), slices.Clone(v.Layers)
	v.Gaps, v.Stalls, v.Spans, v.Tokens = slices.Clip(v.Gaps), slices.Clip(v.Stalls), slices.Clip(v.Spans), slices.Clip(v.Tokens)
	c.text = slices.Clone(l.text)
	c.of, c.kind, c.group = nil, nil, nil
	return &c
}

// weight is the size of what is kept of single tokens, in bytes.
func (l *live) weight() int {
	return l.detail + len(l.view.Tokens)*int(unsafe.Sizeof(Token{})) + 8*len(l.view.Gaps) + len(l.text) + len(l.view.Prompt)
}

// shorten keeps the last n tokens alone.
func (l *live) shorten(n int) {
	v := &l.view
	if cut := len(v.Gaps) - n; cut > 0 {
		v.Gaps, v.FirstGap = slices.Clone(v.Gaps[cut:]), v.FirstGap+cut
	}
	if cut := len(v.Tokens) - n; cut > 0 {
		for i := range v.Tokens[:cut] {
			l.detail -= v.Tokens[i].detail()
		}
		v.Tokens = slices.Clone(v.Tokens[cut:])
	}
	if len(l.text) > MaxText/8 {
		l.text, v.TextCut = slices.Clone(l.text[len(l.text)-MaxText/8:]), true
	}
}

// thaw is a state that goes on from what was kept. Requests that had ended come with what the ring still has of them.
func (f *frozen) thaw(from *ring, unpack func([]byte) []byte) *state {
	s := f.state
	s.groups, s.judge = cloneGroups(f.state.groups), f.state.judge.Clone()
	s.latency.spreads.own()
	s.reported = f.reported.thaw(unpack)
	s.latency.distributions = new(distributions)
	for i, w := range s.latency.all() {
		f.windows[i].UnpackTo(w)
	}
	s.requests = ring{past: f.state.requests.past, gone: f.state.requests.gone.clone(), byID: make(map[event.RequestID]*live, MaxRequests)}
	for _, r := range f.requests {
		l := r.thaw(from)
		if l.done != nil {
			s.requests.done++
		}
		s.requests.list = append(s.requests.list, l)
		s.requests.byID[l.view.ID] = l
	}
	if f.picks != nil {
		s.experts = f.picks.thaw(unpack)
	}
	if f.told != nil {
		s.told = f.told.thaw(unpack)
	}
	return &s
}

func (r *frozenRequest) thaw(from *ring) *live {
	if r.live != nil {
		l := r.live.clone()
		itl := r.itl.Unpack()
		l.itl = &itl
		return l
	}
	full := r.slim
	if l := from.byID[r.slim.ID]; l != nil && l.slim == r.slim {
		full = l.done
	}
	return &live{view: *full, done: full, slim: r.slim}
}
