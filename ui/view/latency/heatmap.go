package latency

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// leastOctaves is the minimum range of the ITL axis in octaves, so that nearly equal gaps are not magnified.
const leastOctaves = 2

// heatAxisWidth is the width of the axis of a heatmap.
const heatAxisWidth = 9

// drawHeat draws a trend as a heatmap: one column per second, the newest at the right, durations on a logarithmic axis or
// in the buckets of the server. The colour is the share of what the second counted that took so long.
func (t *trend) drawHeat(a grid.Area, f *pane.Frame) {
	if a.H < 1 {
		return
	}
	l := a.Line(0, 0)
	l.Put(pane.Heading, t.over).Gap(2)
	if a.H < 4 || a.W < heatAxisWidth+10 {
		return
	}
	plot, axis := a.Sub(heatAxisWidth, 1, a.W-heatAxisWidth, a.H-1), a.Sub(0, 1, heatAxisWidth, a.H-1)
	n, last := t.heatColumns(plot, axis, f)
	if n == 0 {
		a.Text(0, 1, pane.Dim, "starts with the first second of "+t.of)
		return
	}
	for y := range axis.H {
		axis.Cell(axis.W-1, y, grid.Fg(theme.Border), f.Skin.Glyphs.Vertical)
	}
	pane.HeatLegend(&l, f, t.of)
	l.Fit(grid.Piece{Style: pane.Dim, Words: "1 column = 1 s"})
	pane.ChartMarks(plot, f, last, n)
}

// heatColumns draws the columns of a heatmap and the labels of its axis. It returns the number of columns and the time of
// the last one.
func (t *trend) heatColumns(plot, axis grid.Area, f *pane.Frame) (n int, last event.Time) {
	if t.counted != nil {
		cols := t.columns(plot.W)
		lo, hi := usedBuckets(cols)
		if lo >= hi {
			return 0, 0
		}
		for x := range cols {
			if counts := cols[x].Counts(); counts != nil {
				pane.HeatColumn(plot, f, x, counts[lo:hi], float64(cols[x].Count))
			}
		}
		labelBuckets(axis, t.counted.Bounds(), lo, hi)
		return len(cols), event.Time(t.last * int64(time.Second))
	}
	pts := t.points(plot.W)
	lo, hi, ok := spreadRange(pts)
	if !ok {
		return 0, 0
	}
	for i := range pts {
		if p := &pts[i]; p.Spread != nil {
			pane.HeatColumn(plot, f, plot.W-len(pts)+i, p.Spread[lo:hi], float64(p.Count))
		}
	}
	labelSpread(axis, lo, hi)
	return len(pts), pts[len(pts)-1].At
}

// usedBuckets returns the buckets with values, from lo to below hi, and the empty ones beside them.
func usedBuckets(cols []metric.Buckets) (lo, hi int) {
	lo = math.MaxInt
	n := 0
	for i := range cols {
		for b, count := range cols[i].Counts() {
			if n = len(cols[i].Counts()); count > 0 {
				lo, hi = min(lo, b), max(hi, b+1)
			}
		}
	}
	if lo >= hi {
		return 0, 0
	}
	return max(lo-1, 0), min(hi+1, n)
}

// labelBuckets labels the border between two buckets where there is room: the upper bound of the lower one.
func labelBuckets(a grid.Area, bounds []int64, lo, hi int) {
	free := a.H
	for b := lo + 1; b < hi; b++ {
		if y := a.H - 1 - (b-lo)*a.H/(hi-lo); y < free && y >= 0 {
			a.Right(a.W-2, y, pane.Dim, pane.AxisLabel(pane.TimeAxis, float64(bounds[b-1]))(float64(bounds[b-1]), 0))
			free = y
		}
	}
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

// labelSpread labels 1, 2 and 5 of every power of ten from bucket lo at the bottom to hi, where there is room.
func labelSpread(a grid.Area, lo, hi int) {
	least, most := store.SpreadStart(lo), store.SpreadStart(hi)
	scale, free := float64(a.H)/math.Log(most/least), a.H
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
