package panes

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// ExpertView is the router as the user looks at it, and, after it has been drawn, where its maps are.
type ExpertView struct {
	Span          ExpertSpan
	By            ExpertsBy
	Chosen        bool // Layer and Expert were chosen; else they are the hottest
	Layer, Expert int
	First         int // which of the tables below the map comes first
	Budget        int // parts of BudgetParts of all experts that there is room for

	Maps []ExpertCells
	mark *store.Snapshot // of the newest mark; nil if there is none to compare with
	sums expertSums
}

// BudgetParts is in how many steps the budget goes from no expert to all.
const BudgetParts = 32

// ExpertSpan is what the maps cover.
type ExpertSpan uint8

// The spans, in the order in which a key goes through them.
const (
	SpanMinute ExpertSpan = iota
	SpanSession
	SpanRequest
	SpanTen
	NumSpans
)

var spanWindows = [NumSpans]metric.Window{SpanMinute: metric.Minute, SpanSession: metric.Session, SpanTen: metric.TenSeconds}

// String names the span as titles do.
func (p ExpertSpan) String() string {
	if p == SpanRequest {
		return "last request"
	}
	return spanWindows[p].String()
}

// ExpertsBy is how the picks are divided among maps.
type ExpertsBy uint8

// The divisions.
const (
	ByNothing ExpertsBy = iota
	ByKind
	ByGroup
	NumBys
)

// String names the division.
func (b ExpertsBy) String() string {
	return [...]string{"all together", "by kind of prompt", "by group"}[b]
}

// ExpertCells is where a map is on the screen.
type ExpertCells struct {
	At grid.Rect
	m  heatmap
}

// hits are the picks of a span and a phase, nil if nothing was picked in it.
func (p ExpertSpan) hits(x *store.Experts, phase metric.Phase) (h *store.Hits) {
	switch {
	case x == nil || x.Experts == 0 || x.Layers == 0:
		return nil
	case p != SpanRequest:
		h = x.Hits[spanWindows[p]][phase]
	case x.Request != nil:
		h = x.Request.Hits[phase]
	}
	if h == nil || h.Tokens == 0 {
		return nil
	}
	return h
}

// Hits are the picks that the map shows; nil if there are none.
func (v *ExpertView) Hits(s *store.Snapshot, c *Ctx) *store.Hits {
	return v.Span.hits(s.Experts, c.Phase)
}

// Forget goes back to what is true of any engine, since another one is on show.
func (v *ExpertView) Forget() { v.Chosen, v.sums.key = false, sumsKey{} }

// settle keeps the cell that is looked at on the map.
func (v *ExpertView) settle(x *store.Experts, h *store.Hits) {
	if !v.Chosen && h != nil {
		v.Layer, v.Expert = hottest(h, x)
	}
	v.Layer, v.Expert = min(max(v.Layer, 0), x.Layers-1), min(max(v.Expert, 0), x.Experts-1)
}

// hottest is the expert with the largest share of its layer's picks.
func hottest(h *store.Hits, x *store.Experts) (layer, expert int) {
	best := -1.0
	for l, v := range h.Layers {
		if v.Total == 0 || len(v.Hot) == 0 {
			continue
		}
		if share := float64(h.Counts[l*x.Experts+v.Hot[0]]) / float64(v.Total); share > best {
			best, layer, expert = share, l, v.Hot[0]
		}
	}
	return layer, expert
}

// mapOf is one of the maps side by side.
type mapOf struct {
	name string
	h    *store.Hits
}

// divided are the maps to draw: one, or one of each kind or group.
func (v *ExpertView) divided(s *store.Snapshot, h *store.Hits) (maps []mapOf) {
	var of []store.PicksOf
	switch {
	case v.By == ByNothing:
		return []mapOf{{"", h}}
	case s.Picks == nil || s.Picks.Layers != s.Experts.Layers || s.Picks.Experts != s.Experts.Experts:
		return nil
	case v.By == ByKind:
		of = s.Picks.Kinds
	default:
		of = s.Picks.Groups
	}
	for _, p := range of {
		maps = append(maps, mapOf{nameOf(p.Name), p.Hits})
	}
	return maps
}

// nameOf is the name of a kind or group on the screen.
func nameOf(name string) string {
	if name == "" {
		return "(no name)"
	}
	return sanitize.Line(name)
}

// ExpertMap draws the router: its map, or several side by side, the balance of every layer, the cell that is looked at, a budget, and what
// single tokens tell.
func ExpertMap(a grid.Area, v *ExpertView, s *store.Snapshot, c *Ctx) {
	v.Maps = v.Maps[:0]
	c.caps = s.Engine.Caps
	title := "Experts"
	h := v.Hits(s, c)
	if a.W < leastWidth || a.H < leastHeight {
		c.frameAs(a, title)
		return
	}
	if h == nil {
		c.noPicks(c.frameAs(a, title, c.Phase.String()+", "+v.Span.String()), v, s)
		return
	}
	v.compareWith(c.Mark(), s)
	v.sums.update(v, h, s, c)
	maps := v.divided(s, h)
	if len(maps) > 0 && v.By != ByNothing {
		h = s.Picks.All
	}
	v.settle(s.Experts, h)
	if len(maps) == 0 {
		c.absent(c.frameAs(a, title, v.By.String()), dim, c.noTold(s), "press v to see all together")
		return
	}
	in := a.Inset(2, 1)
	l := v.lay(in, s, c, len(maps))
	m := v.drawMaps(l.maps, maps, &l, s, c)
	short, long := v.what(c)
	c.frameAs(a, title, m.covers(c, short, long)...)
	c.expertFacts(in.Sub(0, 0, in.W, l.facts), v, maps, len(l.shown), h, s)
	c.expertCell(l.cell, v, h, s)
	c.expertBudget(l.budget, v, s)
	c.expertTables(l.tables, v, s)
	drawHeatScale(a, maps[0].h, c)
}

// compareWith takes the picks of a mark, if they are of the same router and of an earlier moment.
func (v *ExpertView) compareWith(m *Mark, s *store.Snapshot) {
	v.mark = nil
	if m == nil || m.Snapshot.Experts == nil || m.Snapshot.Now > s.Now {
		return
	}
	if was, x := m.Snapshot.Experts, s.Experts; was.Layers == x.Layers && was.Experts == x.Experts {
		v.mark = m.Snapshot
	}
}

// what names what the maps show: short, and with the window.
func (v *ExpertView) what(c *Ctx) (short, long string) {
	if v.By != ByNothing {
		return v.By.String(), v.By.String() + ", generated tokens, session"
	}
	return c.Phase.String(), c.Phase.String() + ", " + v.Span.String()
}

// noPicks says which kind of nothing there is.
func (c *Ctx) noPicks(a grid.Area, v *ExpertView, s *store.Snapshot) {
	if s.Experts == nil || s.Experts.Experts == 0 || v.Span != SpanRequest || s.Engine.State < event.EngineReady {
		c.noExperts(a, s)
		return
	}
	c.absent(a, dim, "no "+c.Phase.String()+" token of the last request", "press w for another window, e for another phase")
}

// noTold says why nothing is known of single tokens.
func (c *Ctx) noTold(s *store.Snapshot) string {
	if s.Picks == nil && !c.caps.Has(event.CapPicks) {
		return "picks of single tokens: not reported by this engine"
	}
	return "no token has told of its picks, or they are not kept of the past of so large a model"
}

// overlaps reports whether the window holds picks that it held at the mark, too.
func (v *ExpertView) overlaps(s *store.Snapshot) bool {
	switch now, was := s.Experts.Request, v.mark.Experts.Request; v.Span {
	case SpanSession:
		return true
	case SpanRequest:
		return now != nil && was != nil && now.ID == was.ID
	}
	return time.Duration(s.Now-v.mark.Now) < spanWindows[v.Span].Span()
}

// expertSums are what takes too long for every frame; they are computed once a second.
type expertSums struct {
	key     sumsKey
	rank    metric.Ranking
	kept    []int // experts of each layer within the budget
	keeping int
	place   []int32 // rank of each expert
	drift   []metric.Drift
	drifted []bool
	all     metric.Drift // mean of the layers
	whole   bool         // some layer had picks at both times
	since   []uint64
}

// sumsKey is what they were computed of.
type sumsKey struct {
	span   ExpertSpan
	phase  metric.Phase
	second int64
	cells  int
	mark   *store.Snapshot
	id     event.RequestID // of the last request
}

func (m *expertSums) update(v *ExpertView, h *store.Hits, s *store.Snapshot, c *Ctx) {
	key := sumsKey{span: v.Span, phase: c.Phase, second: int64(s.Now) / 1e9, cells: len(h.Counts), mark: v.mark}
	if r := s.Experts.Request; r != nil {
		key.id = r.ID
	}
	keep := v.Budget * len(h.Counts) / BudgetParts
	if key == m.key && keep == m.keeping {
		return
	}
	if key != m.key {
		m.key = key
		m.rank.Rank(h.Counts)
		m.place = slices.Grow(m.place[:0], len(h.Counts))[:len(h.Counts)]
		for i := range m.rank.Len() {
			m.place[m.rank.At(i)] = int32(i)
		}
		m.compare(v, h, s, c.Phase)
	}
	m.keeping = keep
	m.kept = slices.Grow(m.kept[:0], s.Experts.Layers)[:s.Experts.Layers]
	clear(m.kept)
	for i := range keep {
		m.kept[m.rank.At(i)/s.Experts.Experts]++
	}
}

// compare finds the drift of every layer since the mark: what its window held then is compared with what it holds now, or with
// what was picked since while the two still share picks.
func (m *expertSums) compare(v *ExpertView, h *store.Hits, s *store.Snapshot, phase metric.Phase) {
	x := s.Experts
	m.drift, m.drifted, m.all, m.whole = m.drift[:0], m.drifted[:0], metric.Drift{}, false
	if v.mark == nil {
		return
	}
	was := v.Span.hits(v.mark.Experts, phase)
	if was == nil {
		return
	}
	now := h.Counts
	if v.overlaps(s) {
		now = m.sinceMark(v.mark.Experts.Hits[metric.Session][phase], x.Hits[metric.Session][phase])
	}
	m.distances(was.Counts, now, x)
}

// sinceMark is what was picked since the session's counts were others. Counts that went down are those of another life of the engine.
func (m *expertSums) sinceMark(was, now *store.Hits) []uint64 {
	m.since = append(m.since[:0], now.Counts...)
	for i, n := range was.Counts {
		if n > m.since[i] {
			return now.Counts
		}
		m.since[i] -= n
	}
	return m.since
}

// distances compares layer by layer.
func (m *expertSums) distances(was, now []uint64, x *store.Experts) {
	n := 0
	for l := range x.Layers {
		from, to := l*x.Experts, (l+1)*x.Experts
		d, ok := metric.DriftOf(was[from:to], now[from:to])
		m.drift, m.drifted = append(m.drift, d), append(m.drifted, ok)
		if ok {
			n++
			m.all.Moved, m.all.Chance = m.all.Moved+d.Moved, m.all.Chance+d.Chance
		}
	}
	if n > 0 {
		m.all.Moved, m.all.Chance, m.whole = m.all.Moved/float64(n), m.all.Chance/float64(n), true
	}
}
