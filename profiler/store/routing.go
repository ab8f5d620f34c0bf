package store

import (
	"cmp"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// routing is the router picks of the current model.
type routing struct {
	experts    *experts        // nil: no counts were received
	dispatched event.RequestID // the newest request that was; 0: none
	concurrent int             // other requests that were running then
	atDispatch *pickCounts     // counts at that time; nil: no counts yet, use the baseline
	tokens     *tokenPicks     // nil: no token had picks
	pass       passExperts
}

// apply stores cumulative counts. It ignores counts whose length differs from layers x experts. A different shape, or
// counts that decreased, mean another model or a restarted engine: counting begins again.
func (r *routing) apply(at event.Time, p *event.Experts) {
	cells := p.Layers * p.Experts
	if p.Layers <= 0 || p.Experts <= 0 || p.Layers > MaxCells || p.Experts > MaxCells || cells > MaxCells ||
		len(p.Decode) != cells || len(p.Prompt) != cells {
		return
	}
	now := newPickCounts(p)
	x := r.experts
	if x == nil || x.layers != p.Layers || x.experts != p.Experts ||
		now.tokens[0] < x.current.tokens[0] || now.tokens[1] < x.current.tokens[1] {
		zero := pickCounts{counts: [2][]uint64{make([]uint64, cells), make([]uint64, cells)}}
		x = &experts{layers: p.Layers, experts: p.Experts, baseline: zero, current: zero, second: int64(at) / int64(second)}
		r.experts, r.atDispatch = x, nil
	}
	for p, counts := range now.counts { // snapshots share what did not change
		if slices.Equal(counts, x.current.counts[p]) {
			now.counts[p] = x.current.counts[p]
		}
	}
	x.advance(at)
	x.used, x.everyN, x.current, x.viewCurrent = p.Used, p.EveryN, now, false
	x.checkpoint()
}

// addToken counts the picks of a token: ExpertsUsed per layer, layer by layer. It ignores other lengths and returns false.
func (r *routing) addToken(m *event.Model, l *liveRequest, at event.Time, picks []uint16) bool {
	if m.Layers <= 0 || m.ExpertsUsed <= 0 || m.Experts <= 0 || m.Layers > MaxCells ||
		m.Experts > MaxCells/m.Layers || m.ExpertsUsed > m.Experts || len(picks) != m.Layers*m.ExpertsUsed {
		return false
	}
	if r.tokens == nil {
		r.tokens = newTokenPicks(m)
	}
	r.tokens.add(l, at, picks)
	return true
}

// markDispatch starts to count the picks since a request was dispatched, while concurrent others were running.
func (r *routing) markDispatch(id event.RequestID, concurrent int) {
	r.dispatched, r.concurrent, r.atDispatch = id, concurrent, nil
	if x := r.experts; x != nil {
		now := x.current
		r.atDispatch, x.viewCurrent = &now, false
	}
}

// sinceDispatch returns the picks since the newest request was dispatched; nil before the first.
func (r *routing) sinceDispatch() *RequestPicks {
	if r.dispatched == 0 {
		return nil
	}
	x := r.experts
	return &RequestPicks{ID: r.dispatched, Concurrent: r.concurrent, pickSpan: x.span(cmp.Or(r.atDispatch, &x.baseline), &x.current)}
}

// view sets the picks of a snapshot.
func (r *routing) view(v *Snapshot) {
	if r.experts != nil {
		v.Experts = r.experts.view(v.Now, r.sinceDispatch)
	}
	if r.tokens != nil {
		v.Picks = r.tokens.view(v.Now)
	}
}
