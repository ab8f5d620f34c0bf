package experts

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// expertSections are the tables below the map.
var expertSections = []func(grid.Area, *store.Snapshot, *pane.Frame, *View){cacheTable, pairTable, kindTable, driftTable}

// NumTables is the number of tables below the map.
var NumTables = len(expertSections)

// tableWidth is the minimum width of a table.
const tableWidth = 36

// The tables whose size depends on what they show, as indices of expertSections.
const (
	kinds = 2
	drift = 3
)

// hintWidth and hintHeight are the size of the table of drift without a mark.
const (
	hintWidth  = 24
	hintHeight = 5
)

// expertTables draws as many tables as fit, starting with the selected one. Without a mark, the table of drift is a hint:
// it leaves its width to the prompt kinds, or its height to the tables above.
func expertTables(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	if a.H < 2 {
		return
	}
	cols := min(max((a.W+3)/(tableWidth+3), 1), NumTables)
	rows := 1
	if cols < NumTables && a.H >= 16 {
		rows = min((NumTables+cols-1)/cols, a.H/8)
	}
	w, h := (a.W+3)/cols-3, a.H/rows
	spare := 0
	switch last := (v.First + NumTables - 1) % NumTables; {
	case v.mark != nil:
	case cols == NumTables:
		spare = w - hintWidth
	case rows == 2 && cols == NumTables-1 && last == drift:
		h = max(h, a.H-hintHeight)
	}
	x := 0
	for i := range min(cols*rows, NumTables) {
		n, width := (v.First+i)%NumTables, w
		switch n {
		case kinds:
			width += spare
		case drift:
			width -= spare
		}
		if i%cols == 0 {
			x = 0
		}
		expertSections[n](a.Sub(x, i/cols*h, width, h-min(rows-1, 1)), s, f, v)
		x += width + 3
	}
}

// tableHead writes the name of a table and the first of the covers texts that fits, and returns the rest of the area.
func tableHead(a grid.Area, name string, covers ...string) grid.Area {
	l := a.Line(0, 0)
	l.Put(pane.Heading, name).Gap(2)
	for _, words := range covers {
		if l.Fit(grid.Piece{Style: pane.Dim, Words: words}) {
			break
		}
	}
	return a.Sub(0, 1, a.W, a.H-1)
}

// matchingPicks returns the per-token picks, or nil if none were reported or their shape differs from the map.
func matchingPicks(s *store.Snapshot) *store.Picks {
	if p := s.Picks; p != nil && p.Layers == s.Experts.Layers && p.Experts == s.Experts.Experts {
		return p
	}
	return nil
}

// pairTable lists the expert pairs that tokens picked together in the selected layer.
func pairTable(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	layer := "L" + strconv.Itoa(v.Layer)
	p := matchingPicks(s)
	if p != nil && p.Pairs != nil && p.PairedTokens < p.All.Tokens {
		layer += ", " + metric.Count(float64(p.PairedTokens)) + " of"
		a = tableHead(a, "Picked together", layer+" "+metric.Count(float64(p.All.Tokens))+" generated tokens", layer+" "+metric.Count(float64(p.All.Tokens)))
	} else {
		a = tableHead(a, "Picked together", layer+", generated tokens, session", layer+", session", layer)
	}
	switch {
	case p == nil:
		a.Wrapped(0, 0, pane.Dim, noPicksReason(s, f))
		return
	case p.Used < 2:
		a.Wrapped(0, 0, pane.Dim, "top-1 routing: a token picks one expert per layer")
		return
	case p.Pairs == nil:
		a.Wrapped(0, 0, pane.Dim, "not counted: more than "+metric.Count(store.MaxPairs)+" pairs of experts")
		return
	case len(p.Pairs[v.Layer]) == 0:
		a.Wrapped(0, 0, pane.Dim, "no token with two picks in this layer yet")
		return
	}
	for y, pair := range p.Pairs[v.Layer][:min(len(p.Pairs[v.Layer]), max(a.H, 0))] {
		l := a.Line(0, y)
		st := pane.Plain
		if v.Chosen && (int(pair.A) == v.Expert || int(pair.B) == v.Expert) {
			st = grid.Fg(theme.Accent)
		}
		l.Put(st, "e"+strconv.Itoa(int(pair.A))+" + e"+strconv.Itoa(int(pair.B))).Gap(max(12-l.X, 1))
		l.Tail(6, pane.Loud, metric.Percent(float64(pair.Tokens)/float64(p.PairedTokens))).Put(pane.Dim, " of tokens")
		l.Tail(7, pane.Plain, metric.Rate(pair.Lift)).Put(pane.Dim, f.Skin.Glyphs.Times)
		l.Fit(grid.Piece{Style: pane.Dim, Words: " chance"})
	}
}

// kindTable compares the routing of the selected layer across prompt kinds, or across groups if the maps are divided by
// group or only groups differ.
func kindTable(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	p, name := matchingPicks(s), "By prompt kind"
	var parts []store.NamedPicks
	if p != nil {
		parts = p.Kinds
		if v.By == ByGroup || len(p.Kinds) < 2 && len(p.Groups) > 1 {
			parts, name = p.Groups, "By group"
		}
	}
	layer := "L" + strconv.Itoa(v.Layer)
	a = tableHead(a, name, layer+", generated tokens, session", layer+", session", layer)
	if p == nil {
		a.Wrapped(0, 0, pane.Dim, noPicksReason(s, f))
		return
	}
	const names, tokens, hot, diff = 11, 6, 5, 6
	strip := a.Sub(names+tokens+hot+diff+1, 0, a.W-names-tokens-hot-diff-1, a.H)
	a.Right(names+tokens, 0, pane.Dim, "tokens")
	a.Right(names+tokens+hot, 0, pane.Dim, "hot")
	a.Right(names+tokens+hot+diff, 0, pane.Dim, "diff")
	if per := expertsPerCell(strip.W, p.Experts); per > 1 {
		share := strconv.Itoa(per)
		strip.Text(0, 0, pane.Dim, pane.FirstFitting(strip.W, "highest share of "+share+" experts", "max of "+share, share+"/cell", ""))
	} else {
		strip.Text(0, 0, pane.Dim, pane.FirstFitting(strip.W, "share per expert", "share", ""))
	}
	top := 0.0
	for i := range parts {
		for _, e := range parts[i].Hits.Layers[v.Layer].Hot {
			top = max(top, shareOf(parts[i].Hits, p.Experts, v.Layer, e))
		}
	}
	for i := range parts[:min(len(parts), max(a.H-1, 0))] {
		k, y := &parts[i], i+1
		a.Elide(0, y, names-1, pane.Plain, displayName(k.Name), f.Skin.Glyphs.Ellipsis)
		a.Right(names+tokens, y, pane.Plain, metric.Count(float64(k.Hits.Tokens)))
		if l := k.Hits.Layers[v.Layer]; l.Total > 0 && len(l.Hot) > 0 {
			a.Right(names+tokens+hot, y, pane.Loud, "e"+strconv.Itoa(l.Hot[0]))
		}
		from, to := v.Layer*p.Experts, (v.Layer+1)*p.Experts
		if d, ok := metric.DriftOf(p.All.Counts[from:to], k.Hits.Counts[from:to]); ok {
			a.Right(names+tokens+hot+diff, y, pane.Plain, metric.Percent(d.Moved))
		}
		drawExpertStrip(strip.Sub(0, y, strip.W, 1), f, k.Hits, p.Experts, v.Layer, top)
	}
}

// expertsPerCell returns how many experts share a cell of a strip of w cells.
func expertsPerCell(w, experts int) int { return (experts + w - 1) / max(w, 1) }

// drawExpertStrip draws the experts of a layer in one row; experts that share a cell show the hottest.
func drawExpertStrip(a grid.Area, f *pane.Frame, h *store.Hits, experts, layer int, top float64) {
	per := expertsPerCell(a.W, experts)
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
			pane.HeatCell(a, f, x*cell+i, 0, share/top)
		}
	}
}

// driftTable lists the layers by routing drift since the newest mark.
func driftTable(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	if v.mark == nil {
		a = tableHead(a, "Drift")
		a.Wrapped(0, 0, pane.Dim, "press m to set a mark; the routing drift of each layer since the mark shows here")
		return
	}
	since := f.Mark().Name
	if v.overlaps(s) {
		a = tableHead(a, "Drift", f.Phase.String()+", since "+since+" vs "+v.Span.String()+" at "+since, "since "+since+" vs before", "since "+since)
	} else {
		a = tableHead(a, "Drift", f.Phase.String()+", "+v.Span.String()+" vs same at "+since, "vs "+since)
	}
	m := &v.sums
	if !m.comparable {
		a.Wrapped(0, 0, pane.Dim, "no "+f.Phase.String()+" tokens to compare yet")
		return
	}
	l := a.Line(0, 0)
	l.Put(pane.Dim, "mean over layers ").Put(driftStyle(m.meanDrift), metric.Percent(m.meanDrift.Moved))
	l.Fit(grid.Piece{Style: pane.Dim, Words: ", chance " + metric.Percent(m.meanDrift.Chance)})
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
		driftRow(a, f, y+1, n, &m.drift[n])
	}
}

func driftRow(a grid.Area, f *pane.Frame, y, layer int, d *metric.Drift) {
	l := a.Line(0, y)
	l.Put(pane.Plain, "L"+strconv.Itoa(layer)).Gap(max(5-l.X, 1))
	l.Tail(6, driftStyle(*d), metric.Percent(d.Moved)).Put(pane.Dim, " chance").Tail(6, pane.Dim, metric.Percent(d.Chance))
	sign := "+"
	if d.Change < 0 {
		sign = "-"
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: "  e" + strconv.Itoa(d.Expert) + " "}, grid.Piece{Style: pane.Plain, Words: sign + metric.Percent(max(d.Change, -d.Change))})
}
