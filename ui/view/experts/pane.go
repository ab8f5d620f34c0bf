package experts

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// expertGrid maps layers and experts to screen cells.
type expertGrid struct {
	At       grid.Rect // screen position, after drawing
	e        *store.Experts
	h        *store.Hits
	cell     int     // columns per expert; 1 if several share one
	tall     int     // rows per layer; 1 if several share one
	perCol   int     // experts in one column
	perRow   int     // layers in one row (or half row)
	half     bool    // two layers per row, as half blocks
	cols     int     // columns of the map
	rowCount int     // rows of the map
	top      float64 // end of the scale; 0: the hottest share of h
}

const tallest = 2 // rows of a layer: more say no more

// fitExpertGrid returns the largest cells with which all layers and experts fit into w by h, at most widest columns per
// expert. Where they do not fit, experts and layers share cells evenly.
func fitExpertGrid(f *pane.Frame, e *store.Experts, hits *store.Hits, w, h, widest int) expertGrid {
	m := expertGrid{e: e, h: hits, cell: 1, tall: 1, perCol: 1, perRow: 1}
	w, h = max(w, 1), max(h, 1)
	if e.Experts > w {
		m.perCol = (e.Experts + w - 1) / w
	} else {
		m.cell = min(w/e.Experts, widest)
	}
	m.cols = (e.Experts + m.perCol - 1) / m.perCol * m.cell
	lines := h
	if e.Layers > h && f.Skin.Colour() && !f.Skin.Glyphs.ASCII {
		m.half = true
		lines = 2 * h
	}
	if e.Layers > lines {
		m.perRow = (e.Layers + lines - 1) / lines
	} else if !m.half {
		m.tall = min(h/e.Layers, (m.cell+1)/2, tallest)
	}
	m.tall = max(m.tall, 1)
	m.rowCount = (e.Layers + m.perRow - 1) / m.perRow * m.tall
	if m.half {
		m.rowCount = (m.rowCount + 1) / 2
	}
	return m
}

// share returns the hottest share among the experts and layers of one cell, so that shared cells hide no hot spot.
func (m *expertGrid) share(row, col int) float64 {
	hottest := 0.0
	for l := row * m.perRow; l < min((row+1)*m.perRow, m.e.Layers); l++ {
		total := m.h.Layers[l].Total
		if total == 0 {
			continue
		}
		for e := col * m.perCol; e < min((col+1)*m.perCol, m.e.Experts); e++ {
			hottest = max(hottest, float64(m.h.Counts[l*m.e.Experts+e])/float64(total))
		}
	}
	return hottest
}

// heat returns the colour of one cell; the hottest expert of all has the full colour.
func (m *expertGrid) heat(row, col int) theme.Role {
	top := m.scaleEnd()
	if row*m.perRow >= m.e.Layers || top <= 0 {
		return theme.Background
	}
	return theme.Heat(m.share(row, col) / top)
}

// scaleEnd returns the share at the end of the colour scale.
func (m *expertGrid) scaleEnd() float64 {
	if m.top > 0 {
		return m.top
	}
	return m.h.Max
}

func (m *expertGrid) draw(a grid.Area, f *pane.Frame) {
	for y := range min(m.rowCount, a.H) {
		for x := range min(m.cols, a.W) {
			col := x / m.cell
			if m.half {
				a.Halves(x, y, m.heat(2*y, col), m.heat(2*y+1, col), f.Skin.Glyphs)
			} else {
				pane.HeatCell(a, f, x, y, metric.Share(m.share(y/m.tall, col), m.scaleEnd()))
			}
		}
	}
}

// covers returns titles, the longest first: what is shown, with and without the window, and what one cell covers where
// that is more than one expert of one layer. The cell size is in every title.
func (m *expertGrid) covers(f *pane.Frame, short, when string) []string {
	sep := " " + string(f.Skin.Glyphs.Bullet) + " "
	sample := sampled(m.e)
	if sample != "" {
		when += sep + sample
	}
	switch {
	case m.perCol*m.perRow == 1 && sample != "":
		return []string{when, short + sep + sample, sample}
	case m.perCol*m.perRow == 1:
		return []string{when}
	}
	cell, least := "1 cell = ", "cell = "+strconv.Itoa(m.perCol)+f.Skin.Glyphs.Times+strconv.Itoa(m.perRow)
	switch {
	case m.perCol > 1 && m.perRow > 1:
		cell += strconv.Itoa(m.perCol) + " experts of " + strconv.Itoa(m.perRow) + " layers"
	case m.perCol > 1:
		cell += strconv.Itoa(m.perCol) + " experts"
	default:
		cell += strconv.Itoa(m.perRow) + " layers"
	}
	return []string{when + sep + cell + ", hottest shown", short + sep + cell, cell, least}
}

// sampled returns the sampling of picks, "" if all steps are counted.
func sampled(e *store.Experts) string {
	if e.EveryN <= 1 {
		return ""
	}
	return "1 step in " + strconv.Itoa(e.EveryN)
}

func DrawPane(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	h := hitsOf(s.Experts, func(x *store.Experts) *store.Hits { return x.Hits(f.Window, f.Phase) })
	if h == nil {
		noExperts(f.Box(a, f.Phase.String()+", "+f.Window.String()), s, f)
		return
	}
	inside := a.Inset(2, 1)
	labels := grid.Width("L"+strconv.Itoa(s.Experts.Layers-1)) + 1
	side := sideWidth(s.Experts, inside.W-labels)
	mapH := max(inside.H-2, 1)
	if inside.H < 6 {
		mapH = max(inside.H-1, 1)
	}
	m := fitExpertGrid(f, s.Experts, h, inside.W-labels-side, mapH, 4)
	in := f.Box(a, m.covers(f, f.Phase.String(), f.Phase.String()+", "+f.Window.String())...)
	top := 0
	if in.H > m.rowCount+1 {
		drawExpertNumbers(in, labels, &m)
		top = 1
	}
	m.draw(in.Sub(labels, top, in.W-labels, m.rowCount), f)
	drawLayerNames(in.Sub(0, top, in.W, m.rowCount), f, &m, side, labels)
	below := top + m.rowCount
	if in.H > below+1 {
		below++
	}
	drawMostImbalanced(in, f, below, h)
	drawTokenBasis(in, below+1, h, s.Experts)
	drawHeatScale(a, f, h)
}

// noExperts draws why there is no map.
func noExperts(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	switch {
	case f.Waiting(a, s):
	case s.HeatmapsDropped:
		f.Absent(a, pane.Dim, "router picks of this moment are no longer kept", "those of a large model are kept for a minute")
	case Missing(s) != "":
		f.Absent(a, pane.Dim, Missing(s), "")
	case s.Experts == nil:
		f.Absent(a, pane.Dim, "no token routed yet", f.Suggest)
	default:
		f.Absent(a, pane.Dim, "no "+f.Phase.String()+" token in the "+f.Window.String(), "press w for a longer window, e for another phase")
	}
}

// Missing returns why the engine does not report router picks; "" if it does, or if llmtop runs it and it is not ready.
func Missing(s *store.Snapshot) string {
	switch {
	case s.Dense():
		return "dense model: no router, no experts"
	case !s.Engine.Caps.Has(event.CapExperts) && (s.Engine.Remote.Link != event.LinkNone || s.Engine.State == event.EngineReady):
		return "router picks: not reported by this engine"
	}
	return ""
}

// Widths of the columns beside the map: max/mean of each layer, its three hottest and its three coldest experts.
const (
	meanWidth = 7  // gap of two, "1.85×"
	listWidth = 15 // gap of two, one word, three numbers
)

// sideWidth returns the width of the numbers beside the map: the widest set that leaves two columns per expert.
func sideWidth(e *store.Experts, w int) int {
	for _, side := range []int{meanWidth + 2*listWidth, meanWidth + listWidth, meanWidth} {
		if w-side >= 2*e.Experts {
			return side
		}
	}
	return 0
}

func drawExpertNumbers(a grid.Area, labels int, m *expertGrid) {
	step := 1
	for step*m.cell < 3 {
		step *= 2
	}
	for col := 0; col*m.cell+2 <= m.cols; col += step {
		a.Text(labels+col*m.cell, 0, pane.Dim, strconv.Itoa(col*m.perCol))
	}
}

func drawLayerNames(a grid.Area, f *pane.Frame, m *expertGrid, side, labels int) {
	step := m.perRow
	if m.half {
		step *= 2
	}
	x := labels + m.cols + 2
	for y := 0; y < m.rowCount; y += m.tall {
		l := y / m.tall * step
		a.Text(0, y, pane.Dim, "L"+strconv.Itoa(l))
		if side > 0 && step == 1 {
			drawLayer(a.Sub(x, y, side-2, 1), f, m.h.Layers[l])
		}
	}
	if side > meanWidth && step > 1 {
		drawImbalancedLayers(a.Sub(x, 0, a.W-x, a.H), m.h)
	}
}

// drawLayer writes a layer's imbalance and its hottest and coldest experts.
func drawLayer(a grid.Area, f *pane.Frame, h store.LayerHits) {
	if h.Total == 0 {
		a.Text(0, 0, pane.Dim, "no pick")
		return
	}
	l := a.Line(0, 0)
	l.Tail(4, imbalanceStyle(h.MaxMean), metric.Rate(h.MaxMean)).Put(pane.Dim, f.Skin.Glyphs.Times)
	drawList(a.Sub(meanWidth, 0, listWidth-2, 1), "hot", h.Hot, pane.Plain)
	cold := a.Sub(meanWidth+listWidth, 0, listWidth-2, 1)
	if h.Dead > 0 {
		cold.Text(0, 0, pane.Watch, strconv.Itoa(h.Dead)+" idle")
		return
	}
	drawList(cold, "cold", h.Cold, pane.Dim)
}

// drawList writes the numbers of up to three experts, if all fit.
func drawList(a grid.Area, name string, experts []int, st grid.Style) {
	w := (a.W - 4) / 3
	if w < 2 {
		return
	}
	a.Text(0, 0, pane.Dim, name)
	for i, e := range experts {
		a.Right(4+(i+1)*w, 0, st, strconv.Itoa(e))
	}
}

// imbalanceStyle colours max/mean; it is 1 for a uniform router.
func imbalanceStyle(v float64) grid.Style {
	switch {
	case v >= 4:
		return pane.Bad
	case v >= 2.5:
		return pane.Watch
	}
	return pane.Data
}

// drawImbalancedLayers lists the most imbalanced layers, for maps with several layers per row.
func drawImbalancedLayers(a grid.Area, h *store.Hits) {
	limit := 1e300
	for y := range a.H {
		worst := -1
		for l, v := range h.Layers {
			if v.MaxMean < limit && (worst < 0 || v.MaxMean > h.Layers[worst].MaxMean) {
				worst = l
			}
		}
		if worst < 0 {
			return
		}
		v := h.Layers[worst]
		limit = v.MaxMean
		l := a.Line(0, y)
		l.Put(pane.Dim, "L"+strconv.Itoa(worst)).Gap(max(5-l.X, 1)).Tail(4, imbalanceStyle(v.MaxMean), metric.Rate(v.MaxMean)).Put(pane.Dim, "×  hot")
		for _, e := range v.Hot {
			l.Tail(4, pane.Plain, strconv.Itoa(e))
		}
	}
}

// drawMostImbalanced names the most imbalanced layer and its hottest expert.
func drawMostImbalanced(a grid.Area, f *pane.Frame, y int, h *store.Hits) {
	worst := 0
	for i, v := range h.Layers {
		if v.MaxMean > h.Layers[worst].MaxMean {
			worst = i
		}
	}
	v := h.Layers[worst]
	if v.Total == 0 || len(v.Hot) == 0 {
		return
	}
	l := a.Line(0, y)
	times := metric.Rate(v.MaxMean) + f.Skin.Glyphs.Times
	l.Put(imbalanceStyle(v.MaxMean), "L"+strconv.Itoa(worst))
	if !l.Fit(grid.Piece{Style: pane.Plain, Words: " most imbalanced: "}, grid.Piece{Style: pane.Dim, Words: "expert "}, grid.Piece{Style: pane.Plain, Words: strconv.Itoa(v.Hot[0])},
		grid.Piece{Style: pane.Dim, Words: " takes "}, grid.Piece{Style: pane.Data, Words: times}, grid.Piece{Style: pane.Dim, Words: " the uniform share"}) {
		l.Fit(grid.Piece{Style: pane.Plain, Words: " imbalanced: expert " + strconv.Itoa(v.Hot[0]) + " at "}, grid.Piece{Style: pane.Data, Words: times})
	}
}

// drawTokenBasis writes how many tokens the map covers and the share of each expert under uniform routing.
func drawTokenBasis(a grid.Area, y int, h *store.Hits, e *store.Experts) {
	l := a.Line(0, y)
	tokens := " tokens"
	if sample := sampled(e); sample != "" {
		tokens += " of " + sample
	}
	l.Fit(grid.Piece{Style: pane.Plain, Words: metric.Count(float64(h.Tokens))},
		grid.Piece{Style: pane.Dim, Words: tokens + ", top " + strconv.Itoa(e.Used) + " of " + strconv.Itoa(e.Experts)})
	l.Fit(grid.Piece{Style: pane.Dim, Words: "; uniform share "}, grid.Piece{Style: pane.Plain, Words: metric.Percent(1 / float64(e.Experts))})
}

// drawHeatScale draws the colour scale into the bottom border, from 0 to the hottest share.
func drawHeatScale(a grid.Area, f *pane.Frame, h *store.Hits) {
	const w = 12
	right := " " + metric.Percent(h.Max) + " "
	x := a.W - 2 - grid.Width(right) - w - 3
	if x < 20 || h.Max <= 0 {
		return
	}
	y := a.H - 1
	a.Text(x, y, pane.Dim, " 0 ")
	for i := range w {
		pane.HeatCell(a, f, x+3+i, y, float64(i)/(w-1))
	}
	a.Text(x+3+w, y, pane.Dim, right)
	if words := " share of the layer's picks "; x > grid.Width(words)+4 {
		a.Right(x, y, pane.Dim, words)
	}
}
