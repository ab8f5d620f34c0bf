package panes

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// expertFacts says what the map rests on.
func (c *Ctx) expertFacts(a grid.Area, v *ExpertView, maps []mapOf, shown int, h *store.Hits, s *store.Snapshot) {
	if a.H < 1 {
		return
	}
	l := a.Line(0, 0)
	x := s.Experts
	if v.By != ByNothing {
		more := s.Picks.MoreKinds
		if v.By == ByGroup {
			more = s.Picks.MoreGroups
		}
		l.Put(text, metric.Count(float64(s.Picks.All.Tokens))).Put(dim, " generated tokens have told of their picks")
		if shown < len(maps) {
			l.Fit(grid.Piece{Style: watch, Words: "; " + itoa(shown) + " of " + itoa(len(maps)) + " maps have room"})
		}
		if more > 0 {
			l.Fit(grid.Piece{Style: watch, Words: "; " + metric.Count(float64(more)) + " tokens of others are not shown"})
		}
		return
	}
	if r := x.Request; v.Span == SpanRequest && r != nil {
		l.Put(text, "#"+itoa(int(r.ID))).Put(dim, ": ")
		if r.Beside > 0 {
			l.Put(watch, "with "+itoa(r.Beside)+" beside it, whose tokens are counted too: ")
		}
	}
	drawSpread(a.Sub(l.X, 0, a.W-l.X, 1), 0, h, x)
	if rest := a.W - 76; rest > 50 && v.Span != SpanRequest {
		drawWorst(a.Sub(a.W-rest, 0, rest, 1), 0, h, c)
	}
}

// expertCell tells of the expert that is looked at, and of its layer.
func (c *Ctx) expertCell(a grid.Area, v *ExpertView, h *store.Hits, s *store.Snapshot) {
	if a.H < 2 {
		return
	}
	x, times := s.Experts, c.Skin.Glyphs.Times
	l := a.Line(0, 0)
	l.Put(grid.Fg(theme.Accent).With(grid.Bold), "L"+itoa(v.Layer)+" e"+itoa(v.Expert)).Gap(2)
	if v.By != ByNothing {
		c.cellOfEach(&l, v, s)
	} else {
		row := h.Counts[v.Layer*x.Experts:][:x.Experts]
		n, share := row[v.Expert], shareOf(h, x.Experts, v.Layer, v.Expert)
		rank := 1
		for e, o := range row {
			if o > n || o == n && e < v.Expert {
				rank++
			}
		}
		fact(&l, "", metric.Percent(share), " of the layer's picks")
		fact(&l, "", metric.Count(float64(n)), " picks")
		fact(&l, "", metric.Rate(share*float64(x.Experts))+times, " its even share")
		fact(&l, "rank ", itoa(rank), " of "+itoa(x.Experts))
		kept := "not kept"
		if place := int(v.sums.place[v.Layer*x.Experts+v.Expert]); place < v.sums.keeping {
			kept = "kept"
		}
		l.Fit(grid.Piece{Style: dim, Words: kept + " within the budget   "})
	}
	c.layerFacts(a, v, h, s)
}

// fact writes a number between words, if there is room for them.
func fact(l *grid.Line, before, number, after string) {
	l.Fit(grid.Piece{Style: dim, Words: before}, grid.Piece{Style: loud, Words: number}, grid.Piece{Style: dim, Words: after + "   "})
}

// cellOfEach writes the share of the expert in every map.
func (c *Ctx) cellOfEach(l *grid.Line, v *ExpertView, s *store.Snapshot) {
	of := s.Picks.Kinds
	if v.By == ByGroup {
		of = s.Picks.Groups
	}
	for _, p := range of {
		share := "no pick"
		if p.Hits.Layers[v.Layer].Total > 0 {
			share = metric.Percent(shareOf(p.Hits, s.Picks.Experts, v.Layer, v.Expert))
		}
		if !l.Fit(grid.Piece{Style: dim, Words: nameOf(p.Name) + " "}, grid.Piece{Style: loud, Words: share}, grid.Piece{Words: "   "}) {
			return
		}
	}
}

// layerFacts tells of the layer that is looked at.
func (c *Ctx) layerFacts(a grid.Area, v *ExpertView, h *store.Hits, s *store.Snapshot) {
	l, of := a.Line(0, 1), h.Layers[v.Layer]
	l.Put(text, "L"+itoa(v.Layer)).Gap(2)
	if of.Total == 0 {
		l.Put(dim, "no pick")
		return
	}
	if len(of.Hot) > 0 {
		fact(&l, "hottest ", "e"+itoa(of.Hot[0]), " at "+metric.Percent(shareOf(h, s.Experts.Experts, v.Layer, of.Hot[0])))
	}
	l.Fit(grid.Piece{Style: dim, Words: "max/mean "}, grid.Piece{Style: imbalanceStyle(of.MaxMean), Words: metric.Rate(of.MaxMean)}, grid.Piece{Words: "   "})
	fact(&l, "entropy ", strconv.FormatFloat(of.Entropy, 'f', 3, 64), "")
	fact(&l, "idle ", itoa(of.Dead), "")
	if n := v.Layer; v.By == ByNothing && n < len(v.sums.drift) && v.sums.drifted[n] {
		d := v.sums.drift[n]
		l.Fit(grid.Piece{Style: dim, Words: "drift "}, grid.Piece{Style: driftStyle(d), Words: metric.Percent(d.Moved)}, grid.Piece{Words: "   "})
	}
	fact(&l, "CV ", metric.Rate(of.CV), "")
	if v.By == ByNothing {
		fact(&l, "kept ", itoa(v.sums.kept[v.Layer]), " of "+itoa(s.Experts.Experts))
	}
}

// expertBudget draws the slider: how many experts there is room for on the faster device, and what share of the picks goes to those that
// are kept if they are the most picked.
func (c *Ctx) expertBudget(a grid.Area, v *ExpertView, s *store.Snapshot) {
	if a.H < 1 {
		return
	}
	m, x := &v.sums, s.Experts
	all := m.rank.Len()
	l := a.Line(0, 0)
	l.Put(text, "Budget").Gap(1)
	w := min(max(a.W/6, 8), BudgetParts)
	share := float64(v.Budget) / BudgetParts
	a.Bar(l.X, 0, w, share, theme.Accent, c.Skin.Colour(), c.Skin.Glyphs)
	l.Gap(w + 1)
	l.Put(loud, itoa(m.keeping)).Put(dim, " of "+itoa(all)+" experts")
	if b, ok := metric.ExpertBytes(float64(s.Model.Bytes), float64(s.Model.WeightBytes), x.Experts, x.Used, all); ok {
		l.Fit(grid.Piece{Style: dim, Words: ", "}, grid.Piece{Style: text, Words: metric.Bytes(b * float64(m.keeping))})
	}
	l.Put(dim, ": ").Put(loud, metric.Percent(float64(m.rank.Covered(m.keeping))/float64(max(m.rank.Total(), 1)))).Put(dim, " of routing")
	if v.By != ByNothing {
		l.Fit(grid.Piece{Style: dim, Words: " (" + c.Phase.String() + ", " + v.Span.String() + ")"})
	}
	l.Fit(grid.Piece{Style: dim, Words: " covered by the most picked"})
	l.Fit(grid.Piece{Style: dim, Words: "; if all were picked alike "}, grid.Piece{Style: text, Words: metric.Percent(float64(m.keeping) / float64(max(all, 1)))})
	l.Fit(grid.Piece{Style: grid.Fg(theme.Accent).With(grid.Bold), Words: "   < >"})
}
