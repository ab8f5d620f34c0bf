package panes

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// expertSections are the tables below the map.
var expertSections = []func(*Ctx, grid.Area, *ExpertView, *store.Snapshot){(*Ctx).pairTable, (*Ctx).kindTable, (*Ctx).driftTable}

// NumExpertTables is how many there are.
var NumExpertTables = len(expertSections)

// tableWidth is how wide a table is at least.
const tableWidth = 36

// expertTables draws as many tables as there is room for, that which the user has chosen first.
func (c *Ctx) expertTables(a grid.Area, v *ExpertView, s *store.Snapshot) {
	if a.H < 2 {
		return
	}
	cols := min(max((a.W+3)/(tableWidth+3), 1), NumExpertTables)
	rows := 1
	if cols < NumExpertTables && a.H >= 16 {
		rows = min((NumExpertTables+cols-1)/cols, a.H/8)
	}
	w, h := (a.W+3)/cols-3, a.H/rows
	for i := range min(cols*rows, NumExpertTables) {
		at := a.Sub(i%cols*(w+3), i/cols*h, w, h-min(rows-1, 1))
		expertSections[(v.First+i)%NumExpertTables](c, at, v, s)
	}
}

// tableHead writes the name of a table and what it covers, and returns the rest of the area.
func tableHead(a grid.Area, name string, covers ...string) grid.Area {
	l := a.Line(0, 0)
	l.Put(head, name).Gap(2)
	for _, words := range covers {
		if l.Fit(grid.Piece{Style: dim, Words: words}) {
			break
		}
	}
	return a.Sub(0, 1, a.W, a.H-1)
}

// told is what single tokens tell, nil if nothing that fits the map.
func told(s *store.Snapshot) *store.Picks {
	if p := s.Picks; p != nil && p.Layers == s.Experts.Layers && p.Experts == s.Experts.Experts {
		return p
	}
	return nil
}

// sentence writes a sentence into a table that has no rows.
func (c *Ctx) sentence(a grid.Area, words string) {
	for y, line := range grid.Wrap(nil, words, a.W) {
		a.Text(0, y, dim, line)
	}
}

// pairTable lists which experts of the layer tokens picked together.
func (c *Ctx) pairTable(a grid.Area, v *ExpertView, s *store.Snapshot) {
	layer := "L" + itoa(v.Layer)
	p := told(s)
	if p != nil && p.Pairs != nil && p.Paired < p.All.Tokens {
		layer += ", " + metric.Count(float64(p.Paired)) + " of"
		a = tableHead(a, "Picked together", layer+" "+metric.Count(float64(p.All.Tokens))+" generated tokens", layer+" "+metric.Count(float64(p.All.Tokens)))
	} else {
		a = tableHead(a, "Picked together", layer+", generated tokens, session", layer+", session", layer)
	}
	switch {
	case p == nil:
		c.sentence(a, c.noTold(s))
		return
	case p.Used < 2:
		c.sentence(a, "a token picks one expert of a layer")
		return
	case p.Pairs == nil:
		c.sentence(a, "not counted: more than "+metric.Count(store.MaxPairs)+" pairs of experts")
		return
	case len(p.Pairs[v.Layer]) == 0:
		c.sentence(a, "no token has told of two picks in this layer")
		return
	}
	for y, pair := range p.Pairs[v.Layer][:min(len(p.Pairs[v.Layer]), max(a.H, 0))] {
		l := a.Line(0, y)
		st := text
		if v.Chosen && (pair.A == v.Expert || pair.B == v.Expert) {
			st = grid.Fg(theme.Accent)
		}
		l.Put(st, "e"+itoa(pair.A)+" + e"+itoa(pair.B)).Gap(max(12-l.X, 1))
		l.Tail(6, loud, metric.Percent(float64(pair.Tokens)/float64(p.Paired))).Put(dim, " of tokens")
		l.Tail(7, text, metric.Rate(pair.Lift)).Put(dim, c.Skin.Glyphs.Times)
		l.Fit(grid.Piece{Style: dim, Words: " chance"})
	}
}

// kindTable compares the layer's routing of the kinds of prompts, or of the groups if that is what is looked at.
func (c *Ctx) kindTable(a grid.Area, v *ExpertView, s *store.Snapshot) {
	p, name := told(s), "By kind of prompt"
	var of []store.PicksOf
	if p != nil {
		of = p.Kinds
		if v.By == ByGroup || len(p.Kinds) < 2 && len(p.Groups) > 1 {
			of, name = p.Groups, "By group"
		}
	}
	layer := "L" + itoa(v.Layer)
	a = tableHead(a, name, layer+", generated tokens, session", layer+", session", layer)
	if p == nil {
		c.sentence(a, c.noTold(s))
		return
	}
	const names, tokens, hot, apart = 11, 6, 5, 6
	strip := a.Sub(names+tokens+hot+apart+1, 0, a.W-names-tokens-hot-apart-1, a.H)
	a.Right(names+tokens, 0, dim, "tokens")
	a.Right(names+tokens+hot, 0, dim, "hot")
	a.Right(names+tokens+hot+apart, 0, dim, "apart")
	if strip.W >= 24 {
		strip.Text(0, 0, dim, "share of each expert")
	}
	top := 0.0
	for i := range of {
		for _, e := range of[i].Hits.Layers[v.Layer].Hot {
			top = max(top, shareOf(of[i].Hits, p.Experts, v.Layer, e))
		}
	}
	for i := range of[:min(len(of), max(a.H-1, 0))] {
		k, y := &of[i], i+1
		a.Elide(0, y, names-1, text, nameOf(k.Name), c.Skin.Glyphs.Ellipsis)
		a.Right(names+tokens, y, text, metric.Count(float64(k.Hits.Tokens)))
		if l := k.Hits.Layers[v.Layer]; l.Total > 0 && len(l.Hot) > 0 {
			a.Right(names+tokens+hot, y, loud, "e"+itoa(l.Hot[0]))
		}
		from, to := v.Layer*p.Experts, (v.Layer+1)*p.Experts
		if d, ok := metric.DriftOf(p.All.Counts[from:to], k.Hits.Counts[from:to]); ok {
			a.Right(names+tokens+hot+apart, y, text, metric.Percent(d.Moved))
		}
		c.strip(strip.Sub(0, y, strip.W, 1), k.Hits, p.Experts, v.Layer, top)
	}
}

// strip draws the experts of a layer in one row, the hottest of those that share a cell.
func (c *Ctx) strip(a grid.Area, h *store.Hits, experts, layer int, top float64) {
	per := (experts + a.W - 1) / max(a.W, 1)
	if a.W < 4 || top <= 0 {
		return
	}
	cell := max(min(a.W/experts, 2), 1)
	for x := 0; x*per < experts; x++ {
		share := 0.0
		for e := x * per; e < min((x+1)*per, experts); e++ {
			share = max(share, shareOf(h, experts, layer, e))
		}
		for i := range cell {
			if c.Skin.Colour() {
				a.Cell(x*cell+i, 0, text.On(theme.Heat(share/top)), ' ')
			} else {
				a.Cell(x*cell+i, 0, data, shade(share, top, c.Skin.Glyphs))
			}
		}
	}
}

// driftTable lists the layers whose routing has changed most since the newest mark.
func (c *Ctx) driftTable(a grid.Area, v *ExpertView, s *store.Snapshot) {
	if v.mark == nil {
		a = tableHead(a, "Drift")
		c.sentence(a, "m marks this moment; how much of each layer's routing goes elsewhere since then is told here")
		return
	}
	since := c.Mark().Name
	if v.overlaps(s) {
		a = tableHead(a, "Drift", c.Phase.String()+", since "+since+" against "+v.Span.String()+" then", "since "+since+" against before", "since "+since)
	} else {
		a = tableHead(a, "Drift", c.Phase.String()+", "+v.Span.String()+" against that of "+since, "against "+since)
	}
	m := &v.sums
	if !m.whole {
		c.sentence(a, "no "+c.Phase.String()+" token to compare yet")
		return
	}
	l := a.Line(0, 0)
	l.Put(dim, "mean of the layers ").Put(driftStyle(m.all), metric.Percent(m.all.Moved))
	l.Fit(grid.Piece{Style: dim, Words: ", by chance " + metric.Percent(m.all.Chance)})
	order := make([]int, 0, len(m.drift))
	for n := range m.drift {
		if m.drifted[n] {
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		if m.drift[x].Moved > m.drift[y].Moved {
			return -1
		}
		return 1
	})
	for y, n := range order[:min(len(order), max(a.H-1, 0))] {
		c.driftRow(a, y+1, n, &m.drift[n])
	}
}

func (c *Ctx) driftRow(a grid.Area, y, layer int, d *metric.Drift) {
	l := a.Line(0, y)
	l.Put(text, "L"+itoa(layer)).Gap(max(5-l.X, 1))
	l.Tail(6, driftStyle(*d), metric.Percent(d.Moved)).Put(dim, " chance").Tail(6, dim, metric.Percent(d.Chance))
	sign := "+"
	if d.Change < 0 {
		sign = "-"
	}
	l.Fit(grid.Piece{Style: dim, Words: "  e" + itoa(d.Expert) + " "}, grid.Piece{Style: text, Words: sign + metric.Percent(max(d.Change, -d.Change))})
}
