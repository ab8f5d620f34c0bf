package latency

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

// trend is a latency over time, one column per second: of measured gaps between tokens, or as a server counts it.
type trend struct {
	name string
	over string // title of the heatmap
	of   string // what is counted

	measured *store.Latency           // nil: counted by a server
	counted  *store.WindowedHistogram // nil: measured
	seconds  int                      // that a server has been watched
	last     int64                    // the newest of them
}

// itlTrend returns the trend of the measured gaps.
func itlTrend(s *store.Snapshot) trend {
	return trend{name: "ITL", over: "ITL over time", of: "tokens", measured: &s.Latency}
}

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

// countedTrends returns the trends of a server's histograms with values, at most n.
func countedTrends(s *store.Snapshot, n int) (out []trend) {
	last := s.Throughput.Series.Last()
	if last == nil {
		return nil
	}
	for _, row := range trended {
		for _, name := range row.names {
			if h := s.Aggregates.Histogram(name); h != nil && h.Summary(metric.Session).Count > 0 && len(out) < n {
				title := HistogramName(name)
				out = append(out, trend{name: title, over: title + " by bucket", of: row.of, counted: h, seconds: s.Throughput.Series.Len(), last: int64(last.At) / int64(time.Second)})
				break
			}
		}
	}
	return out
}

// HasTrends reports whether a server counts latencies, which change over time.
func HasTrends(s *store.Snapshot) bool { return len(countedTrends(s, 1)) > 0 }

// mean reports whether only the mean is known.
func (t *trend) mean() bool { return t.counted != nil && t.counted.Bounds() == nil }

// points returns the measured seconds that fit into w columns.
func (t *trend) points(w int) []store.LatencyPoint {
	pts := t.measured.Series
	return pts[max(len(pts)-w, 0):]
}

// columns returns the newest n seconds that a server counted.
func (t *trend) columns(n int) []metric.Buckets {
	out := make([]metric.Buckets, n)
	t.counted.Columns(out, t.last)
	return out
}

// The minimum size of a trend.
const (
	leastTrendRows  = 6
	leastTrendWidth = 50
)

// drawTrends draws the latencies of a server over time, one below another as far as there is room: percentiles at the
// left, and a heatmap of its buckets at the right or, where it is narrow, below. It reports whether there was one to draw.
func drawTrends(a grid.Area, s *store.Snapshot, f *pane.Frame) bool {
	list := countedTrends(s, a.H/leastTrendRows)
	if len(list) == 0 || list[0].seconds < 2 {
		return false
	}
	for i := range list {
		t := &list[i]
		from, to := a.H*i/len(list), a.H*(i+1)/len(list)
		row := a.Sub(0, from, a.W, to-from)
		chart, heat := row.Sub(0, 0, row.W, row.H), grid.Area{}
		switch n := row.H / 2; {
		case t.mean():
		case row.W >= 2*leastTrendWidth:
			chart, heat = row.Sub(0, 0, row.W/2-1, row.H), row.Sub(row.W/2+1, 0, row.W-row.W/2-1, row.H)
		case n >= leastTrendRows:
			chart, heat = row.Sub(0, 0, row.W, n), row.Sub(0, n, row.W, row.H-n)
		}
		gap := min(row.H/(leastTrendRows+1), 1)
		t.draw(chart.Sub(0, 0, chart.W, chart.H-gap), f)
		t.drawHeat(heat.Sub(0, 0, heat.W, heat.H-gap), f)
	}
	return true
}

// draw draws p50 and p99 per second, or the mean where only that is known, under a heading.
func (t *trend) draw(a grid.Area, f *pane.Frame) {
	l := a.Line(0, 0)
	l.Put(pane.Heading, t.name).Gap(2)
	if t.mean() {
		l.Put(grid.Fg(theme.SeriesP50), "mean")
	} else {
		l.Put(grid.Fg(theme.SeriesP50), "p50").Gap(1).Put(grid.Fg(theme.SeriesP99), "p99")
	}
	l.Put(pane.Dim, "  1 column = 1 s")
	l.Fit(grid.Piece{Style: pane.Dim, Words: ", " + f.AxisWords()})
	if a.H >= 3 {
		t.drawChart(a.Sub(0, 1, a.W, a.H-1), f)
	}
}

var latencyRoles = []theme.Role{theme.SeriesP99, theme.SeriesP50}

// drawChart draws the curves of a trend.
func (t *trend) drawChart(a grid.Area, f *pane.Frame) {
	curves, last, absent := t.measuredCurves(a.W)
	if t.counted != nil {
		curves, last, absent = t.countedCurves(a.W)
	}
	if absent != "" {
		f.Absent(a, pane.Dim, absent, "")
		return
	}
	curves.Log, curves.Fill = f.LogAxis, true
	pane.DrawCurves(a, f, last, pane.TimeAxis, curves)
}

// measuredCurves returns the curves of measured gaps in at most w columns, and the time of the last one; absent is why
// there are none.
func (t *trend) measuredCurves(w int) (curves grid.Curves, last event.Time, absent string) {
	if t.measured == nil {
		return grid.Curves{}, 0, ""
	}
	if len(t.measured.Series) < 2 {
		return grid.Curves{}, 0, "the chart starts after two seconds of tokens"
	}
	pts := t.points(w)
	return grid.Curves{
		N: len(pts), Roles: latencyRoles,
		Stall: func(i int) bool { return pts[i].Stalls > 0 || stalledIn(t.measured.Stalls, pts[i].At) },
		At: func(series, i int) float64 {
			switch p := pts[i]; {
			case p.Count == 0:
				return math.NaN()
			case series == 0:
				return float64(p.P99)
			default:
				return float64(p.P50)
			}
		},
	}, pts[len(pts)-1].At, ""
}

// countedCurves is measuredCurves for what a server counts.
func (t *trend) countedCurves(w int) (curves grid.Curves, last event.Time, absent string) {
	roles := latencyRoles
	if t.mean() {
		roles = roles[1:]
	}
	cols := t.columns(min(w, t.seconds))
	var values []float64 // p99 and p50 of each second
	top := 0.0
	for i := range cols {
		p99, p50 := cols[i].Quantile(0.99), cols[i].Quantile(0.5)
		v := [2]float64{float64(p99.At), float64(p50.At)}
		switch {
		case cols[i].Count > 0 && t.mean():
			v[0] = float64(cols[i].Sum) / float64(cols[i].Count)
		case p99.Edge == metric.NoQuantile:
			v = [2]float64{math.NaN(), math.NaN()}
		}
		if !math.IsNaN(v[0]) {
			top = max(top, v[0])
		}
		values = append(values, v[:]...)
	}
	if top == 0 {
		return grid.Curves{}, 0, "no values in the last " + metric.Duration(int64(len(cols))*int64(time.Second))
	}
	return grid.Curves{
		N: len(cols), At: func(series, i int) float64 { return values[2*i+series] }, Top: grid.NiceTop(top), Roles: roles,
	}, event.Time(t.last * int64(time.Second)), ""
}

// stalledIn reports whether one of the kept stalls ended in the second that starts at t.
func stalledIn(stalls []store.Stall, t event.Time) bool {
	return slices.ContainsFunc(stalls, func(s store.Stall) bool { return s.At >= t && s.At < t+event.Time(time.Second) })
}
