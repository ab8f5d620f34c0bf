package experts

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// expertFacts states how many tokens the map is based on.
func expertFacts(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View, maps []store.NamedPicks, shown int, h *store.Hits) {
	if a.H < 1 {
		return
	}
	l := a.Line(0, 0)
	x := s.Experts
	if v.By.split() {
		more, others := s.Picks.OmittedKinds, "kinds"
		if v.By == ByGroup {
			more, others = s.Picks.OmittedGroups, "groups"
		}
		l.Put(pane.Plain, metric.Count(float64(s.Picks.All.Tokens))).Put(pane.Dim, " generated tokens with reported picks")
		if shown < len(maps) {
			l.Fit(grid.Piece{Style: pane.Watch, Words: "; " + strconv.Itoa(shown) + " of " + strconv.Itoa(len(maps)) + " maps fit"})
		}
		if more > 0 {
			l.Fit(grid.Piece{Style: pane.Watch, Words: "; " + metric.Count(float64(more)) + " tokens of other " + others + " omitted"})
		}
		return
	}
	if r := x.Request; v.Span == SpanRequest && r != nil {
		l.Put(pane.Plain, "#"+strconv.Itoa(int(r.ID))).Put(pane.Dim, ": ")
		if r.Concurrent > 0 {
			l.Put(pane.Watch, "and "+strconv.Itoa(r.Concurrent)+" concurrent, tokens counted together: ")
		}
	}
	drawTokenBasis(a.Sub(l.X, 0, a.W-l.X, 1), 0, h, x)
	if rest := a.W - 76; rest > 50 && v.Span != SpanRequest {
		drawMostImbalanced(a.Sub(a.W-rest, 0, rest, 1), f, 0, h)
	}
}

// expertCell describes the selected expert and its layer.
func expertCell(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View, h *store.Hits) {
	if a.H < 2 {
		return
	}
	x, times := s.Experts, f.Skin.Glyphs.Times
	l := a.Line(0, 0)
	l.Put(grid.Fg(theme.Accent).With(grid.Bold), "L"+strconv.Itoa(v.Layer)+" e"+strconv.Itoa(v.Expert)).Gap(2)
	if v.By.split() {
		sharesByMap(&l, s, f, v)
	} else {
		row := h.Counts[v.Layer*x.Experts:][:x.Experts]
		n, share := row[v.Expert], shareOf(h, x.Experts, v.Layer, v.Expert)
		rank := 1
		for e, o := range row {
			if o > n || o == n && e < v.Expert {
				rank++
			}
		}
		fitFact(&l, "", metric.Percent(share), " of the layer's picks")
		fitFact(&l, "", metric.Count(float64(n)), " picks")
		fitFact(&l, "", metric.Rate(share*float64(x.Experts))+times, " the uniform share")
		fitFact(&l, "rank ", strconv.Itoa(rank), " of "+strconv.Itoa(x.Experts))
		fits := "over budget"
		if place := int(v.sums.ranks[v.Layer*x.Experts+v.Expert]); place < v.sums.budget {
			fits = "fits the budget"
		}
		l.Fit(grid.Piece{Style: pane.Dim, Words: fits + "   "})
	}
	layerFacts(a, s, f, v, h)
}

// fitFact writes a number between two texts, if there is room.
func fitFact(l *grid.Line, before, number, after string) {
	l.Fit(grid.Piece{Style: pane.Dim, Words: before}, grid.Piece{Style: pane.Loud, Words: number}, grid.Piece{Style: pane.Dim, Words: after + "   "})
}

// sharesByMap writes the share of the selected expert in each map.
func sharesByMap(l *grid.Line, s *store.Snapshot, f *pane.Frame, v *View) {
	maps := s.Picks.Kinds
	if v.By == ByGroup {
		maps = s.Picks.Groups
	}
	for _, p := range maps {
		share := "no pick"
		if p.Hits.Layers[v.Layer].Total > 0 {
			share = metric.Percent(shareOf(p.Hits, s.Picks.Experts, v.Layer, v.Expert))
		}
		if !l.Fit(grid.Piece{Style: pane.Dim, Words: displayName(p.Name) + " "}, grid.Piece{Style: pane.Loud, Words: share}, grid.Piece{Words: "   "}) {
			return
		}
	}
}

// layerFacts describes the selected layer.
func layerFacts(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View, h *store.Hits) {
	l, layer := a.Line(0, 1), h.Layers[v.Layer]
	l.Put(pane.Plain, "L"+strconv.Itoa(v.Layer)).Gap(2)
	if layer.Total == 0 {
		l.Put(pane.Dim, "no pick")
		return
	}
	if len(layer.Hot) > 0 {
		fitFact(&l, "hottest ", "e"+strconv.Itoa(layer.Hot[0]), " at "+metric.Percent(shareOf(h, s.Experts.Experts, v.Layer, layer.Hot[0])))
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: "max/mean "}, grid.Piece{Style: imbalanceStyle(layer.MaxMean), Words: metric.Rate(layer.MaxMean)}, grid.Piece{Words: "   "})
	if v.By == ByKind {
		kindTrends(a, &l, s, f, v)
	} else {
		balanceTrend(a, &l, s, f, v.Layer)
	}
	fitFact(&l, "entropy ", strconv.FormatFloat(layer.Entropy, 'f', 3, 64), "")
	fitFact(&l, "idle ", strconv.Itoa(layer.Dead), "")
	if n := v.Layer; !v.By.split() && n < len(v.sums.drift) && v.sums.drifted[n] {
		d := v.sums.drift[n]
		l.Fit(grid.Piece{Style: pane.Dim, Words: "drift "}, grid.Piece{Style: driftStyle(d), Words: metric.Percent(d.Moved)}, grid.Piece{Words: "   "})
	}
	fitFact(&l, "CV ", metric.Rate(layer.CV), "")
	if !v.By.split() {
		fitFact(&l, "fit ", strconv.Itoa(v.sums.kept[v.Layer]), " of "+strconv.Itoa(s.Experts.Experts))
	}
}

// trendWidth is how many seconds of the imbalance are drawn.
const trendWidth = 20

// balanceTrend draws max/mean of a layer while decoding in the last seconds, from 1 to the highest, if there is room and
// it is known.
func balanceTrend(a grid.Area, l *grid.Line, s *store.Snapshot, f *pane.Frame, layer int) {
	if f.Phase == metric.Prompt {
		return
	}
	points := s.Experts.Balance
	at := func(i int) float64 { return float64(points[i].MaxMean[layer]) - 1 }
	points = points[max(len(points)-trendWidth, 0):]
	top := pane.ScaleTop(len(points), at)
	last := ""
	for i := range points {
		if v := at(i); v >= 0 {
			last = metric.Rate(v+1) + " in 10 s"
		}
	}
	if last == "" || !l.Fit(grid.Piece{Style: pane.Dim, Words: last + " "}, grid.Piece{Words: strings.Repeat(" ", trendWidth+3)}) {
		return
	}
	a.Spark(l.X-trendWidth-3, 1, trendWidth, 1, len(points), at, top, theme.SeriesDecode, f.Skin)
}

// kindTrends draws max/mean of the selected layer by prompt kind over its newest picks, as far as there is room.
func kindTrends(a grid.Area, l *grid.Line, s *store.Snapshot, f *pane.Frame, v *View) {
	v.cache.refresh(s, metric.Decode)
	if v.cache.result == nil {
		return
	}
	for i := range v.cache.result.Kinds {
		k := &v.cache.result.Kinds[i]
		if v.Layer >= len(k.Balance) || len(k.Balance[v.Layer]) < 2 {
			continue
		}
		points := k.Balance[v.Layer]
		n := len(points)
		if !l.Fit(grid.Piece{Style: pane.Dim, Words: displayName(k.Name) + " "}, grid.Piece{Style: pane.Loud, Words: metric.Rate(float64(points[n-1]))}, grid.Piece{Words: " " + strings.Repeat(" ", n) + "  "}) {
			return
		}
		at := func(i int) float64 { return float64(points[i]) - 1 }
		a.Spark(l.X-n-2, 1, n, 1, n, at, pane.ScaleTop(n, at), theme.SeriesDecode, f.Skin)
	}
}

// expertBudget draws the slider: how many experts fit on the faster device, and the share of routing covered if the
// most picked experts are placed there.
func expertBudget(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	if a.H < 1 {
		return
	}
	m, x := &v.sums, s.Experts
	all := m.rank.Len()
	l := a.Line(0, 0)
	l.Put(pane.Plain, "Budget").Gap(1)
	w := min(max(a.W/6, 8), BudgetParts)
	share := float64(v.Budget) / BudgetParts
	a.Bar(l.X, 0, w, share, theme.Accent, f.Skin.Colour(), f.Skin.Glyphs)
	l.Gap(w + 1)
	l.Put(pane.Loud, strconv.Itoa(m.budget)).Put(pane.Dim, " of "+strconv.Itoa(all)+" experts")
	const routing = " of routing"
	covered := metric.Percent(float64(m.rank.Covered(m.budget)) / float64(max(m.rank.Total(), 1)))
	if b, ok := metric.ExpertBytes(float64(s.Model.Bytes), float64(s.Model.WeightBytes), x.Experts, x.Used, all); ok {
		if size := metric.Bytes(b * float64(m.budget)); grid.Width(", "+size+": "+covered+routing) <= l.Room() {
			l.Put(pane.Dim, ", ").Put(pane.Plain, size)
		}
	}
	l.Put(pane.Dim, ": ").Put(pane.Loud, covered)
	l.Fit(grid.Piece{Style: pane.Dim, Words: routing})
	if v.By.split() {
		l.Fit(grid.Piece{Style: pane.Dim, Words: " (" + f.Phase.String() + ", " + v.Span.String() + ")"})
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: " covered by the hottest"})
	l.Fit(grid.Piece{Style: pane.Dim, Words: "; uniform baseline "}, grid.Piece{Style: pane.Plain, Words: metric.Percent(float64(m.budget) / float64(max(all, 1)))})
	l.Fit(grid.Piece{Style: grid.Fg(theme.Accent).With(grid.Bold), Words: "   < >"})
}
