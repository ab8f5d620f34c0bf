package latency

import (
	"math"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// leastOctaves is the minimum range of the ITL axis in octaves, so that nearly equal gaps are not magnified.
const leastOctaves = 2

// itlHeatmap draws ITL over time: one column per second, the newest at the right, gaps on a logarithmic axis. The
// colour is the share of the second's tokens that came after such a gap.
func itlHeatmap(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	const axisWidth = 9
	l := a.Line(0, 0)
	l.Put(pane.Heading, "ITL over time").Gap(2)
	if a.H < 4 || a.W < axisWidth+10 {
		return
	}
	plot := a.Sub(axisWidth, 1, a.W-axisWidth, a.H-1)
	pts := s.Latency.Series
	pts = pts[max(len(pts)-plot.W, 0):]
	lo, hi, ok := spreadRange(pts)
	if !ok {
		a.Text(0, 1, pane.Dim, "starts with the first second of tokens")
		return
	}
	heatLegend(c, &l)
	l.Fit(grid.Piece{Style: pane.Dim, Words: "1 column = 1 s"})
	lines := plot.H
	if halves(c) {
		lines *= 2
	}
	for i := range pts {
		if pts[i].Spread != nil {
			heatColumn(c, plot, plot.W-len(pts)+i, lines, &pts[i], lo, hi)
		}
	}
	pane.ChartMarks(c, plot, pts[len(pts)-1].At, len(pts))
	drawSpreadAxis(a.Sub(0, 1, axisWidth, a.H-1), lo, hi, c.Skin.Glyphs)
}

// halves reports whether a cell can show two values, one above the other.
func halves(c *pane.Frame) bool { return c.Skin.Colour() && !c.Skin.Glyphs.ASCII }

// spreadRange returns the buckets in use, from lo to below hi, widened to the minimum range.
func spreadRange(pts []store.LatencyPoint) (lo, hi int, ok bool) {
	lo = store.SpreadBuckets
	for i := range pts {
		if pts[i].Spread == nil {
			continue
		}
		for b, n := range pts[i].Spread {
			if n > 0 {
				lo, hi = min(lo, b), max(hi, b+1)
			}
		}
	}
	if lo >= hi {
		return 0, 0, false
	}
	for lack := leastOctaves*store.SpreadPerOctave - (hi - lo); lack > 0; lack-- {
		if lack%2 == 0 && lo > 0 || hi == store.SpreadBuckets {
			lo--
		} else {
			hi++
		}
	}
	return lo, hi, true
}

// heatColumn draws one second in the given number of lines, one or two per cell.
func heatColumn(c *pane.Frame, plot grid.Area, x, lines int, p *store.LatencyPoint, lo, hi int) {
	share := func(line int) float64 { // share of tokens in a line, line 0 at the bottom
		from := lo + line*(hi-lo)/lines
		to := max(lo+(line+1)*(hi-lo)/lines, from+1)
		sum := uint32(0)
		for _, n := range p.Spread[from:to] {
			sum += n
		}
		return float64(sum) / float64(p.Count)
	}
	for y := range plot.H {
		below := plot.H - 1 - y
		if halves(c) {
			top, bottom := shareHeat(share(2*below+1)), shareHeat(share(2*below))
			if top != theme.Background || bottom != theme.Background {
				plot.Halves(x, y, top, bottom, c.Skin.Glyphs)
			}
			continue
		}
		heatCell(c, plot, x, y, share(below))
	}
}

// heatCell draws one share in one cell: as colour, or as a fill level without colour.
func heatCell(c *pane.Frame, a grid.Area, x, y int, share float64) {
	if share <= 0 {
		return
	}
	if c.Skin.Colour() {
		a.Cell(x, y, grid.Fg(theme.Text).On(shareHeat(share)), ' ')
		return
	}
	shades := c.Skin.Glyphs.Shades
	a.Cell(x, y, pane.Data, shades[1+int(heatOf(share)*float64(len(shades)-2)+0.5)])
}

// heatOf places a share on the scale 0..1 by its square root, which emphasises the few late tokens.
func heatOf(share float64) float64 { return math.Sqrt(min(share, 1)) }

// shareHeat returns the colour of a share. Any share above 0 differs from the background.
func shareHeat(share float64) theme.Role {
	if share <= 0 {
		return theme.Background
	}
	const least = 0.18
	return theme.Heat(least + (1-least)*heatOf(share))
}

// heatLegend explains the colours where there is room.
func heatLegend(c *pane.Frame, l *grid.Line) {
	if !c.Skin.Colour() {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "denser: more of the second's tokens  "})
		return
	}
	mark := string(c.Skin.Glyphs.Swatch)
	for _, share := range [...]float64{0.01, 0.1, 0.5, 1} {
		l.Fit(grid.Piece{Style: grid.Fg(shareHeat(share)), Words: mark}, grid.Piece{Style: pane.Dim, Words: " " + metric.Percent(share) + " "})
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: "of a second's tokens  "})
}

// drawSpreadAxis labels 1, 2 and 5 of every power of ten from bucket lo at the bottom to hi, where there is room.
func drawSpreadAxis(a grid.Area, lo, hi int, gl *theme.Glyphs) {
	least, most := store.SpreadStart(lo), store.SpreadStart(hi)
	scale, free := float64(a.H)/math.Log(most/least), a.H
	for y := range a.H {
		a.Cell(a.W-1, y, grid.Fg(theme.Border), gl.Vertical)
	}
	for p := math.Pow(10, math.Floor(math.Log10(least))); p < most; p *= 10 {
		for _, m := range [...]float64{1, 2, 5} {
			v := p * m
			y := a.H - 1 - int(math.Log(v/least)*scale)
			if v < least || v >= most || y >= free {
				continue
			}
			a.Right(a.W-2, y, pane.Dim, pane.AxisLabel(pane.TimeAxis, v)(v, v))
			free = y
		}
	}
}
