package store

import (
	"slices"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// The bounds of a frozen state.
const (
	// maxFrozenDetail bounds the bytes of tokens, gaps and texts of open requests, newest requests first. Requests
	// beyond it keep their last frozenTokens tokens and gaps only.
	maxFrozenDetail = 256 << 10
	frozenTokens    = 32
)

// frozen is a compact copy of the state at the start of a history segment. It shares what is never written again and
// packs distributions. Ended requests are kept without per-token data; the rest of them is available as long as the
// store has it.
type frozen struct {
	at         event.Time // of the newest event
	now        event.Time // when it was made, on the source's clock and
	wall       time.Time  // on the wall clock
	state      state      // without requests, distributions and picks
	requests   []frozenRequest
	ended      []event.RequestID // ids of ended requests, the first to end first
	windows    [NumLatencies + 2]*metric.PackedWindowed
	experts    *frozenExperts
	tokenPicks *frozenTokenPicks
	aggregates *frozenAggregates
	size       int // approximate bytes that it does not share
}

// frozenRequest is one request: slim if it had ended, otherwise live and itl.
type frozenRequest struct {
	slim *Request
	live *liveRequest // without its distribution
	itl  *metric.Packed
}

// freeze returns a compact copy of the state. pack compresses bytes.
func (s *state) freeze(at, now event.Time, wall time.Time, pack func([]byte) []byte) *frozen {
	f := &frozen{at: at, now: now, wall: wall, state: *s, size: int(unsafe.Sizeof(frozen{}))}
	c := &f.state
	c.onRequest = nil
	c.load, c.log, c.host.Series = slices.Clip(s.load), slices.Clip(s.log), slices.Clip(s.host.Series)
	c.rates.points = slices.Clip(s.rates.points)
	c.latency.stalls, c.latency.series = slices.Clip(s.latency.stalls), slices.Clip(s.latency.series)
	c.groups, c.judge = cloneGroups(s.groups), s.judge.Clone()
	c.latency.spreads.copyOpen()
	for i, w := range s.latency.windows() {
		f.windows[i] = w.Pack()
		f.size += f.windows[i].Size()
	}
	c.latency.distributions = nil
	c.requests = ring{
		past: slices.Clip(s.requests.past), halvings: s.requests.halvings,
		evicted: s.requests.evicted.clone(), overflow: s.requests.overflow.clone(),
	}
	f.size += 100*len(c.groups) + 40*len(c.requests.evicted.order) + 50*len(c.requests.overflow.requests)
	f.freezeRequests(&s.requests)
	f.aggregates, c.aggregates = s.aggregates.freeze(pack), nil
	f.size += f.aggregates.size()
	if s.experts != nil {
		f.experts = s.experts.freeze(pack)
		f.size += len(f.experts.packed)
		c.experts = nil
	}
	if c.tokenPicks = nil; s.tokenPicks != nil {
		if f.tokenPicks = s.tokenPicks.freeze(pack); f.tokenPicks == nil {
			c.picksIncomplete = true
		} else {
			f.size += len(f.tokenPicks.packed)
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

// copyOpen replaces the spread of the current second, which is still written to, with a copy.
func (p *spreads) copyOpen() {
	w := &p.slot[p.second%spreadSlots]
	if w.spread != nil {
		spread := *w.spread
		w.spread = &spread
	}
}

// freezeRequests adds the requests of the ring, oldest first.
func (f *frozen) freezeRequests(from *ring) {
	f.requests = make([]frozenRequest, len(from.byID))
	f.ended = make([]event.RequestID, len(from.ended))
	for i, l := range from.ended {
		f.ended[i] = l.view.ID
	}
	detail, i := 0, len(f.requests)
	for l := range from.newestFirst() {
		i--
		r := &f.requests[i]
		f.size += int(unsafe.Sizeof(*r))
		if l.done != nil {
			if l.slim == nil { // all later frozen states share it
				f.size += int(unsafe.Sizeof(Request{}))
			}
			r.slim = l.slimCopy()
			continue
		}
		r.itl, r.live = l.itl.Pack(), l.clone()
		r.live.itl = nil
		if detail += r.live.detailSize(); detail > maxFrozenDetail {
			limit := from.bound(frozenTokens)
			r.live.shorten(limit, limit, from.bound(MaxText/8))
		}
		f.size += int(unsafe.Sizeof(liveRequest{})) + r.live.detailSize() + r.itl.Size()
	}
}

// clone returns a copy of an open request that shares nothing that will be written to.
func (l *liveRequest) clone() *liveRequest {
	c := *l
	v := &c.view
	v.Layers = slices.Clone(v.Layers)
	v.Gaps, v.Stalls = slices.Clip(v.Gaps), slices.Clip(v.Stalls)
	v.Spans, v.Tokens = slices.Clip(v.Spans), slices.Clip(v.Tokens)
	c.text = slices.Clone(l.text)
	c.tallyOwner, c.kindTally, c.groupTally, c.lastView, c.older, c.newer = nil, nil, nil, nil, nil, nil
	return &c
}

// detailSize returns the size in bytes of the per-token data.
func (l *liveRequest) detailSize() int {
	return l.detailBytes + len(l.view.Tokens)*int(unsafe.Sizeof(Token{})) + 8*len(l.view.Gaps) + len(l.text) + len(l.view.Prompt)
}

// thaw returns a state that continues from the frozen one. Ended requests get the per-token data that the ring from
// still has.
func (f *frozen) thaw(from *ring, unpack func([]byte) []byte) *state {
	s := f.state
	s.groups, s.judge = cloneGroups(f.state.groups), f.state.judge.Clone()
	s.latency.spreads.copyOpen()
	s.aggregates = f.aggregates.thaw(unpack)
	s.latency.distributions = new(distributions)
	for i, w := range s.latency.windows() {
		f.windows[i].UnpackTo(w)
	}
	frozen := &f.state.requests
	s.requests = ring{past: frozen.past, evicted: frozen.evicted.clone(), overflow: frozen.overflow.clone(), halvings: frozen.halvings}
	for i := range f.requests {
		l := f.requests[i].thaw(from)
		if l.done == nil {
			state := l.view.State
			l.view.State = event.StateNone
			s.requests.setState(l, state)
		}
		s.requests.append(l)
	}
	for _, id := range f.ended {
		s.requests.ended = append(s.requests.ended, s.requests.byID[id])
	}
	if f.experts != nil {
		s.experts = f.experts.thaw(unpack)
	}
	if f.tokenPicks != nil {
		s.tokenPicks = f.tokenPicks.thaw(unpack)
	}
	return &s
}

func (r *frozenRequest) thaw(from *ring) *liveRequest {
	if r.live != nil {
		l := r.live.clone()
		l.itl = r.itl.Sparse()
		return l
	}
	full := r.slim
	if l := from.byID[r.slim.ID]; l != nil && l.slim == r.slim {
		full = l.done
	}
	return &liveRequest{view: *full, done: full, slim: r.slim}
}
