package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// expertSlots is how many steps of expertEvery the longest window is made of. One slot of 8 x 16 experts takes 2 KB, one of
// 94 x 256 takes 385 KB: 23 MB a minute.
const (
	expertSlots = 60
	// MaxCells bounds layers x experts of a model whose picks are kept.
	MaxCells = 1 << 16
)

// experts keeps the cumulative counts at the end of each second, so that any window is a difference of two of them.
type experts struct {
	layers, experts, used, everyN int
	now                           picks
	base                          picks // what had been counted when the session, or this model, began
	past                          [expertSlots]picks
	number                        [expertSlots]int64 // which second past holds the end of
	second                        int64
	shown                         *Experts // the last view
	fresh                         bool     // nothing has changed since
}

// picks are cumulative counts.
type picks struct {
	counts [2][]uint64 // by metric.Decode and metric.Prompt
	tokens [2]uint64
}

// applyExperts takes in cumulative counts. Counts that do not fit their own shape are refused; another shape, or counts that went
// down, are another model or another life of the engine, and begin anew.
func (s *state) applyExperts(at event.Time, p *event.Experts) {
	cells := p.Layers * p.Experts
	if p.Layers <= 0 || p.Experts <= 0 || p.Layers > MaxCells || p.Experts > MaxCells || cells > MaxCells ||
		len(p.Decode) != cells || len(p.Prompt) != cells {
		return
	}
	now := picksOf(p)
	x := s.experts
	if x == nil || x.layers != p.Layers || x.experts != p.Experts || now.tokens[0] < x.now.tokens[0] || now.tokens[1] < x.now.tokens[1] {
		zero := picks{counts: [2][]uint64{make([]uint64, cells), make([]uint64, cells)}}
		x = &experts{layers: p.Layers, experts: p.Experts, base: zero, now: zero, second: int64(at) / int64(second)}
		s.experts, s.newest.from = x, nil
	}
	x.advance(at)
	x.used, x.everyN, x.now, x.fresh = p.Used, p.EveryN, now, false
}

func picksOf(p *event.Experts) picks {
	return picks{counts: [2][]uint64{metric.Decode: p.Decode, metric.Prompt: p.Prompt}, tokens: [2]uint64{p.DecodeTokens, p.PromptTokens}}
}

// continues reports whether counts are those that are kept, and more.
func (x *experts) continues(p *event.Experts) bool {
	return x != nil && x.layers == p.Layers && x.experts == p.Experts && len(p.Decode) == len(x.now.counts[0]) && len(p.Prompt) == len(x.now.counts[1])
}

// advance keeps what had been counted by the end of each second that is over: one in which nobody looked is as good as another.
func (x *experts) advance(at event.Time) {
	sec := int64(at) / int64(second)
	if sec <= x.second {
		return
	}
	for over := max(x.second, sec-expertSlots); over < sec; over++ {
		i := over % expertSlots
		x.past[i], x.number[i] = x.now, over
	}
	x.second, x.fresh = sec, false
}

// since is what had been counted by the end of a second: the newest that is kept and not after it.
func (x *experts) since(sec int64) *picks {
	best, found := int64(-1), -1
	for i, n := range x.number {
		if x.past[i].counts[0] != nil && n <= sec && n > best {
			best, found = n, i
		}
	}
	if found < 0 {
		return &x.base
	}
	return &x.past[found]
}

// newest is the request that was dispatched last.
type newest struct {
	id     event.RequestID
	beside int    // requests that were running then
	from   *picks // what had been counted then; nil: nothing
}

// dispatched begins to count the picks of a request.
func (s *state) dispatched(l *live) {
	n := newest{id: l.view.ID}
	for _, o := range s.requests.list {
		if o != l && o.done == nil && o.view.State == event.StateDispatched {
			n.beside++
		}
	}
	if x := s.experts; x != nil {
		now := x.now
		n.from, x.fresh = &now, false
	}
	s.newest = n
}

// request is the picks since the newest request was dispatched, nil if none was.
func (s *state) request() *RequestPicks {
	n, x := s.newest, s.experts
	if n.id == 0 {
		return nil
	}
	from := n.from
	if from == nil {
		from = &x.base
	}
	r := &RequestPicks{ID: n.id, Beside: n.beside}
	for p := range metric.NumPhases {
		r.Hits[p] = x.hits(from, &x.now, p)
	}
	return r
}

// RequestPicks are the picks since a request was dispatched.
type RequestPicks struct {
	ID     event.RequestID
	Beside int // requests that were running when it was dispatched; some of the picks are theirs
	Hits   [metric.NumPhases]*Hits
}

// view is the picks of all windows and phases, shared between snapshots until the counts or the second change.
func (x *experts) view(at event.Time, request func() *RequestPicks) *Experts {
	x.advance(at)
	if !x.fresh {
		x.shown, x.fresh = x.compute(at), true
		x.shown.Request = request()
	}
	return x.shown
}

func (x *experts) compute(at event.Time) *Experts {
	v := &Experts{Layers: x.layers, Experts: x.experts, Used: x.used, EveryN: x.everyN}
	for w := range metric.NumWindows {
		from, to := x.window(w, int64(at)/int64(second))
		for p := range metric.NumPhases {
			v.Hits[w][p] = x.hits(from, to, p)
		}
	}
	return v
}

// window is what had been counted at the beginning and at the end of a window, which is made of the same seconds as a metric.Windowed's.
func (x *experts) window(w metric.Window, now int64) (from, to *picks) {
	if w == metric.Session {
		return &x.base, &x.now
	}
	from, to = x.since(now-int64(w.Span().Seconds())), &x.now
	if w == metric.Second {
		if before := x.since(now - 2); before.tokens != from.tokens {
			return before, from
		}
	}
	return from, to
}

// hits is the difference between two counts in one phase.
func (x *experts) hits(from, to *picks, p metric.Phase) *Hits {
	counts, tokens := make([]uint64, x.layers*x.experts), uint64(0)
	for phase := range to.counts {
		if p != metric.Both && int(p) != phase {
			continue
		}
		tokens += to.tokens[phase] - from.tokens[phase]
		for i, c := range to.counts[phase] {
			if was := from.counts[phase][i]; c > was {
				counts[i] += c - was
			}
		}
	}
	return hitsOf(counts, tokens, x.layers, x.experts)
}

// hitsOf describes counts of so many tokens, which it keeps.
func hitsOf(counts []uint64, tokens uint64, layers, experts int) *Hits {
	h := &Hits{Counts: counts, Tokens: tokens, Layers: make([]LayerHits, layers)}
	for l := range h.Layers {
		row := h.Counts[l*experts : (l+1)*experts]
		b := metric.BalanceOf(row)
		h.Layers[l] = LayerHits{Total: b.Total, MaxMean: b.MaxMean, CV: b.CV, Entropy: b.Entropy, Dead: b.Dead}
		h.Layers[l].Hot, h.Layers[l].Cold = metric.Extremes(row, 3)
		if b.Total > 0 {
			h.Max = max(h.Max, float64(slices.Max(row))/float64(b.Total))
		}
	}
	return h
}
