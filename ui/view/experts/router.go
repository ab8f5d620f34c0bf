package experts

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// BudgetParts is the number of steps of the budget from no expert to all experts.
const BudgetParts = 32

// Span is the time span of the maps.
type Span uint8

// The spans in the order of the key that cycles through them.
const (
	SpanMinute Span = iota
	SpanSession
	SpanRequest
	SpanTen
	NumSpans
)

var spanWindows = [NumSpans]metric.Window{SpanMinute: metric.Minute, SpanSession: metric.Session, SpanTen: metric.TenSeconds}

// String returns the span as used in titles.
func (p Span) String() string {
	if p == SpanRequest {
		return "last request"
	}
	return spanWindows[p].String()
}

// Division selects how picks are divided among maps.
type Division uint8

// The divisions.
const (
	Undivided Division = iota
	ByKind
	ByGroup
	InMemory // not divided: picks beside the share of each expert in the page cache
	NumDivisions
)

// String returns the division as used in titles.
func (b Division) String() string {
	return [...]string{"all together", "by prompt kind", "by group", "in memory"}[b]
}

// split reports whether there is a map per kind or group.
func (b Division) split() bool { return b == ByKind || b == ByGroup }

// hits returns the picks of a span and a phase, or nil without any.
func (p Span) hits(x *store.Experts, phase metric.Phase) *store.Hits {
	return hitsOf(x, func(x *store.Experts) *store.Hits {
		switch {
		case p != SpanRequest:
			return x.Hits(spanWindows[p], phase)
		case x.Request != nil:
			return x.Request.Hits(phase)
		}
		return nil
	})
}

// hitsOf returns some picks of a router, or nil without any.
func hitsOf(x *store.Experts, of func(*store.Experts) *store.Hits) *store.Hits {
	if x == nil || x.Experts == 0 || x.Layers == 0 {
		return nil
	}
	if h := of(x); h != nil && h.Tokens > 0 {
		return h
	}
	return nil
}

// Hits returns the picks that the map shows, or nil.
func (v *View) Hits(s *store.Snapshot, f *pane.Frame) *store.Hits {
	return v.Span.hits(s.Experts, f.Phase)
}

// Reset drops the selected cell and cached sums when another engine is shown.
func (v *View) Reset() { v.Chosen, v.sums.key, v.cache = false, sumsKey{}, cache{} }

// clampSelection keeps the selected cell on the map; without a choice of the user it selects the hottest.
func (v *View) clampSelection(x *store.Experts, h *store.Hits) {
	if !v.Chosen && h != nil {
		v.Layer, v.Expert = hottest(h, x)
	}
	v.Layer, v.Expert = min(max(v.Layer, 0), x.Layers-1), min(max(v.Expert, 0), x.Experts-1)
}

// hottest returns the expert with the largest share of its layer's picks.
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

// mapsToDraw returns the maps to draw: one, or one per kind or group.
func (v *View) mapsToDraw(s *store.Snapshot, h *store.Hits) []store.NamedPicks {
	switch {
	case v.By == Undivided:
		return []store.NamedPicks{{Hits: h}}
	case v.By == InMemory:
		if m := residentMap(s); m != nil {
			return []store.NamedPicks{{Name: "picks", Hits: h}, {Name: "in memory", Hits: m}}
		}
		return nil
	case s.Picks == nil || s.Picks.Layers != s.Experts.Layers || s.Picks.Experts != s.Experts.Experts:
		return nil
	case v.By == ByKind:
		return s.Picks.Kinds
	}
	return s.Picks.Groups
}

// displayName returns the screen name of a kind or group.
func displayName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return sanitize.Line(name)
}

// drawView draws the Experts view: one or more maps, the balance of each layer, the selected cell, the budget, and
// tables from per-token picks.
func drawView(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	v.Maps = v.Maps[:0]
	title := "Experts"
	h := v.Hits(s, f)
	if a.W < pane.LeastWidth || a.H < pane.LeastHeight {
		f.BoxAs(a, title)
		return
	}
	if h == nil {
		noPicks(f.BoxAs(a, title, f.Phase.String()+", "+v.Span.String()), s, f, v)
		return
	}
	v.compareWith(f.Mark(), s)
	v.sums.update(s, f, v, h)
	maps := v.mapsToDraw(s, h)
	if len(maps) > 0 && v.By.split() {
		h = s.Picks.All
	}
	v.clampSelection(s.Experts, h)
	if len(maps) == 0 {
		f.Absent(f.BoxAs(a, title, v.By.String()), pane.Dim, v.noMaps(s, f), "press v to combine all")
		return
	}
	in := a.Inset(2, 1)
	l := v.layout(in, s, f, len(maps))
	m := v.drawMaps(l.maps, s, f, maps, &l)
	short, long := v.titleWords(f)
	f.BoxAs(a, title, m.covers(f, short, long)...)
	expertFacts(in.Sub(0, 0, in.W, l.facts), s, f, v, maps, len(l.shown), h)
	expertCell(l.cell, s, f, v, h)
	expertBudget(l.budget, s, f, v)
	if v.By == InMemory {
		memoryFacts(l.tables, h, s)
		l.tables = l.tables.Sub(0, 1, l.tables.W, l.tables.H-1)
	}
	expertTables(l.tables, s, f, v)
	drawHeatScale(a, f, maps[0].Hits)
}

// compareWith takes the picks of a mark, if they come from the same router shape and an earlier time.
func (v *View) compareWith(m *pane.Mark, s *store.Snapshot) {
	v.mark = nil
	if m == nil || m.Snapshot.Experts == nil || m.Snapshot.Now > s.Now {
		return
	}
	if was, x := m.Snapshot.Experts, s.Experts; was.Layers == x.Layers && was.Experts == x.Experts {
		v.mark = m.Snapshot
	}
}

// titleWords returns what the maps show, without and with the time span.
func (v *View) titleWords(f *pane.Frame) (short, long string) {
	if v.By.split() {
		return v.By.String(), v.By.String() + ", generated tokens, session"
	}
	return f.Phase.String(), f.Phase.String() + ", " + v.Span.String()
}

// noPicks draws why there are no picks.
func noPicks(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	if s.Experts == nil || s.Experts.Experts == 0 || v.Span != SpanRequest || s.Engine.State < event.EngineReady {
		noExperts(a, s, f)
		return
	}
	f.Absent(a, pane.Dim, "no "+f.Phase.String()+" token in the last request", "press w for another window, e for another phase")
}

// noPicksReason returns why there are no per-token picks.
func noPicksReason(s *store.Snapshot, f *pane.Frame) string {
	if s.Picks == nil && !s.Engine.Caps.Has(event.CapPicks) {
		return "per-token picks: not reported by this engine"
	}
	return "no per-token picks yet"
}

// overlaps reports whether the window still holds picks that it held at the mark.
func (v *View) overlaps(s *store.Snapshot) bool {
	switch now, was := s.Experts.Request, v.mark.Experts.Request; v.Span {
	case SpanSession:
		return true
	case SpanRequest:
		return now != nil && was != nil && now.ID == was.ID
	}
	return time.Duration(s.Now-v.mark.Now) < spanWindows[v.Span].Span()
}

// expertSums holds results that are too costly for each frame; they are computed once per second.
type expertSums struct {
	key        sumsKey
	rank       metric.Ranking
	kept       []int // experts of each layer that fit the budget
	budget     int
	ranks      []int32 // rank of each expert
	drift      []metric.Drift
	drifted    []bool
	meanDrift  metric.Drift // mean over layers
	comparable bool         // at least one layer has picks at both times
	since      []uint64
}

// sumsKey identifies the input of expertSums.
type sumsKey struct {
	span   Span
	phase  metric.Phase
	second int64
	cells  int
	mark   *store.Snapshot
	id     event.RequestID // of the last request
}

func (m *expertSums) update(s *store.Snapshot, f *pane.Frame, v *View, h *store.Hits) {
	key := sumsKey{span: v.Span, phase: f.Phase, second: int64(s.Now) / 1e9, cells: len(h.Counts), mark: v.mark}
	if r := s.Experts.Request; r != nil {
		key.id = r.ID
	}
	keep := v.Budget * len(h.Counts) / BudgetParts
	if key == m.key && keep == m.budget {
		return
	}
	if key != m.key {
		m.key = key
		m.rank.Rank(h.Counts)
		m.ranks = slices.Grow(m.ranks[:0], len(h.Counts))[:len(h.Counts)]
		for i := range m.rank.Len() {
			m.ranks[m.rank.At(i)] = int32(i)
		}
		m.compare(v, h, s, f.Phase)
	}
	m.budget = keep
	m.kept = slices.Grow(m.kept[:0], s.Experts.Layers)[:s.Experts.Layers]
	clear(m.kept)
	for i := range keep {
		m.kept[m.rank.At(i)/s.Experts.Experts]++
	}
}

// compare computes the drift of each layer since the mark: the window at the mark vs the window now, or vs the picks
// since the mark while both windows share picks.
func (m *expertSums) compare(v *View, h *store.Hits, s *store.Snapshot, phase metric.Phase) {
	x := s.Experts
	m.drift, m.drifted, m.meanDrift, m.comparable = m.drift[:0], m.drifted[:0], metric.Drift{}, false
	if v.mark == nil {
		return
	}
	was := v.Span.hits(v.mark.Experts, phase)
	if was == nil {
		return
	}
	now := h.Counts
	if v.overlaps(s) {
		now = m.sinceMark(v.mark.Experts.Hits(metric.Session, phase), x.Hits(metric.Session, phase))
	}
	m.distances(was.Counts, now, x)
}

// sinceMark returns the session picks since the mark. If a count went down, the engine restarted and all current picks
// are returned.
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

// distances computes the drift layer by layer and its mean.
func (m *expertSums) distances(was, now []uint64, x *store.Experts) {
	n := 0
	for l := range x.Layers {
		from, to := l*x.Experts, (l+1)*x.Experts
		d, ok := metric.DriftOf(was[from:to], now[from:to])
		m.drift, m.drifted = append(m.drift, d), append(m.drifted, ok)
		if ok {
			n++
			m.meanDrift.Moved, m.meanDrift.Chance = m.meanDrift.Moved+d.Moved, m.meanDrift.Chance+d.Chance
		}
	}
	if n > 0 {
		m.meanDrift.Moved, m.meanDrift.Chance, m.comparable = m.meanDrift.Moved/float64(n), m.meanDrift.Chance/float64(n), true
	}
}
