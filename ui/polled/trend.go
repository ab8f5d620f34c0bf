package polled

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// trended lists the histograms with a trend in display order, with what they count. Of each row the first one that the
// engine reports is shown.
var trended = [...]struct {
	names []string
	of    string
}{
	{[]string{event.HistogramTTFT}, "requests"},
	{[]string{event.HistogramITL}, "tokens"},
	{[]string{event.HistogramTPOT, event.HistogramPerToken}, "requests"},
	{[]string{event.HistogramE2EL}, "requests"},
	{[]string{event.HistogramQueue}, "requests"},
}

// trend is a histogram over time.
type trend struct {
	*store.WindowedHistogram
	of string
}

// trends returns the histograms with values, at most n.
func trends(s *store.Snapshot, n int) (out []trend) {
	for _, row := range trended {
		for _, name := range row.names {
			if t := s.Aggregates.Histogram(name); t != nil && t.Summary(metric.Session).Count > 0 && len(out) < n {
				out = append(out, trend{t, row.of})
				break
			}
		}
	}
	return out
}

// HasTrends reports whether an engine reports latencies that change over time.
func HasTrends(s *store.Snapshot) bool { return len(trends(s, 1)) > 0 }

// The minimum size of a trend.
const (
	leastTrendRows  = 6
	leastTrendWidth = 50
)

// drawTrends draws latencies over time, one below another as far as there is room: percentiles at the left, and a heatmap
// of the engine's buckets at the right or, where it is narrow, below. It reports whether there was one to draw.
func drawTrends(c *pane.Frame, a grid.Area, s *store.Snapshot) bool {
	list, pts := trends(s, a.H/leastTrendRows), c.Rates(s)
	if len(list) == 0 || len(pts) < 2 {
		return false
	}
	last := int64(pts[len(pts)-1].At) / int64(time.Second)
	for i, t := range list {
		from, to := a.H*i/len(list), a.H*(i+1)/len(list)
		row := a.Sub(0, from, a.W, to-from)
		chart, heat := row.Sub(0, 0, row.W, row.H), grid.Area{}
		switch n := row.H / 2; {
		case t.Bounds() == nil:
		case row.W >= 2*leastTrendWidth:
			chart, heat = row.Sub(0, 0, row.W/2-1, row.H), row.Sub(row.W/2+1, 0, row.W-row.W/2-1, row.H)
		case n >= leastTrendRows:
			chart, heat = row.Sub(0, 0, row.W, n), row.Sub(0, n, row.W, row.H-n)
		}
		gap := min(row.H/(leastTrendRows+1), 1)
		drawTrend(c, chart.Sub(0, 0, chart.W, chart.H-gap), t, last, len(pts))
		drawTrendHeat(c, heat.Sub(0, 0, heat.W, heat.H-gap), t, last)
	}
	return true
}

// seconds returns the newest n seconds of a trend, up to the second last.
func (t trend) seconds(c *pane.Frame, n int, last int64) []metric.Buckets {
	c.Scratch.Seconds = slices.Grow(c.Scratch.Seconds[:0], n)[:n]
	t.Columns(c.Scratch.Seconds, last)
	return c.Scratch.Seconds
}

// drawTrend draws p50 and p99 per second, or the mean of an engine that reports no buckets.
func drawTrend(c *pane.Frame, a grid.Area, t trend, last int64, kept int) {
	if a.H < 4 || a.W < 20 {
		return
	}
	roles := []theme.Role{theme.SeriesP99, theme.SeriesP50}
	l := a.Line(0, 0)
	l.Put(pane.Heading, histogramName(t.Name)).Gap(2)
	if t.Bounds() == nil {
		roles = roles[1:]
		l.Put(grid.Fg(theme.SeriesP50), "mean")
	} else {
		l.Put(grid.Fg(theme.SeriesP50), "p50").Gap(1).Put(grid.Fg(theme.SeriesP99), "p99")
	}
	l.Put(pane.Dim, "  1 column = 1 s")
	cols := t.seconds(c, min(a.W, kept), last)
	values := c.Scratch.Values[:0] // p99 and p50 of each second
	top, stamp := 0.0, last
	for i := range cols {
		p99, p50 := cols[i].Quantile(0.99), cols[i].Quantile(0.5)
		v := [2]float64{float64(p99.At), float64(p50.At)}
		switch {
		case cols[i].Count > 0 && len(roles) == 1:
			v[0] = float64(cols[i].Sum) / float64(cols[i].Count)
		case p99.Edge == metric.NoQuantile:
			v = [2]float64{math.NaN(), math.NaN()}
		}
		if !math.IsNaN(v[0]) {
			top, stamp = max(top, v[0]), stamp*31+int64(v[0])
		}
		values = append(values, v[:]...)
	}
	c.Scratch.Values = values
	top = grid.NiceTop(top)
	plot := a.Sub(0, 1, a.W, a.H-1)
	if top == 0 {
		plot.Text(0, 0, pane.Dim, "no values in the last "+metric.Duration(int64(len(cols))*int64(time.Second)))
		return
	}
	c.Scratch.Chart("trend "+t.Name).Draw(plot, grid.Curves{
		N: len(cols), At: func(series, i int) float64 { return values[2*i+series] }, Top: top, Stamp: stamp, Roles: roles,
		Label: pane.AxisLabel(pane.TimeAxis, top), Log: c.LogAxis, Fill: true,
	}, c.Skin)
	pane.ChartMarks(c, plot.Sub(pane.ChartAxisWidth, 0, plot.W-pane.ChartAxisWidth, plot.H), event.Time(last*int64(time.Second)), len(cols))
}

// drawTrendHeat draws the engine's buckets over time: one column per second, one band per bucket.
func drawTrendHeat(c *pane.Frame, a grid.Area, t trend, last int64) {
	const axisWidth = 9
	if a.H < 4 || a.W < axisWidth+10 {
		return
	}
	l := a.Line(0, 0)
	l.Put(pane.Heading, histogramName(t.Name)+" by bucket").Gap(2)
	pane.HeatLegend(c, &l, t.of)
	plot := a.Sub(axisWidth, 1, a.W-axisWidth, a.H-1)
	cols := t.seconds(c, plot.W, last)
	lo, hi := usedBuckets(cols)
	if lo >= hi {
		return
	}
	for x := range cols {
		if counts := cols[x].Counts(); counts != nil {
			pane.HeatColumn(c, plot, x, counts[lo:hi], float64(cols[x].Count))
		}
	}
	pane.ChartMarks(c, plot, event.Time(last*int64(time.Second)), len(cols))
	drawBucketAxis(c, a.Sub(0, 1, axisWidth, a.H-1), t.Bounds(), lo, hi)
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

// drawBucketAxis labels the border between two buckets where there is room: the upper bound of the lower one.
func drawBucketAxis(c *pane.Frame, a grid.Area, bounds []int64, lo, hi int) {
	for y := range a.H {
		a.Cell(a.W-1, y, grid.Fg(theme.Border), c.Skin.Glyphs.Vertical)
	}
	free := a.H
	for b := lo + 1; b < hi; b++ {
		if y := a.H - 1 - (b-lo)*a.H/(hi-lo); y < free && y >= 0 {
			a.Right(a.W-2, y, pane.Dim, pane.AxisLabel(pane.TimeAxis, float64(bounds[b-1]))(float64(bounds[b-1]), 0))
			free = y
		}
	}
}
