package latency

import (
	"math"

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
	pane.HeatLegend(c, &l, "tokens")
	l.Fit(grid.Piece{Style: pane.Dim, Words: "1 column = 1 s"})
	for i := range pts {
		if p := &pts[i]; p.Spread != nil {
			pane.HeatColumn(c, plot, plot.W-len(pts)+i, p.Spread[lo:hi], float64(p.Count))
		}
	}
	pane.ChartMarks(c, plot, pts[len(pts)-1].At, len(pts))
	drawSpreadAxis(a.Sub(0, 1, axisWidth, a.H-1), lo, hi, c.Skin.Glyphs)
}

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
