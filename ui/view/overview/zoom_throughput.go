package overview

import (
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// zoomThroughput draws all throughput numbers at the left and their charts at the right.
func zoomThroughput(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	if s.CallsOnly() || nothingYet(s) {
		drawThroughput(a, s, f)
		return
	}
	in := f.Box(a, rateCovers("tokens per second, queue and KV cache", s)...)
	left := min(max(in.W/3, 38), 56)
	r := pane.RowWriter{A: in.Sub(0, 0, left, in.H)}
	drawNumbers(&r, s, f)
	drawWholeSession(&r, s)
	drawGroups(&r, s)
	drawSpeculation(&r, s, f)
	pts := f.Rates(s)
	right := in.Sub(left+2, 0, in.W-left-2, in.H)
	if right.W < 30 || len(pts) < 2 {
		return
	}
	charts := []func(grid.Area){func(a grid.Area) { pane.DrawRatesChart(a, f, pts) }}
	if s.KV.Total > 0 {
		charts = append(charts, func(a grid.Area) { drawKVChart(a, f, pts, s.KV.Total) })
	}
	for _, k := range reportedCharts {
		at := func(_, i int) float64 { return float64(k.at(&pts[i])) }
		if slices.ContainsFunc(pts, func(p store.RatePoint) bool { return !math.IsNaN(float64(k.at(&p))) }) {
			curves := grid.Curves{N: len(pts), At: at, Roles: []theme.Role{k.role}, Log: f.LogAxis && !k.share, Fill: true}
			charts = append(charts, func(a grid.Area) { drawReported(a, f, pts, k.name, k.share, curves) })
		}
	}
	const least = 9 // rows of a chart
	n := max(min(len(charts), right.H/least), 1)
	for i, draw := range charts[:n] {
		from, to := right.H*i/n, right.H*(i+1)/n
		draw(right.Sub(0, from, right.W, to-from-1))
	}
}

// reportedCharts are the charts of numbers that not all engines report.
var reportedCharts = [...]struct {
	name  string
	role  theme.Role
	at    func(*store.RatePoint) float32
	share bool
}{
	{"Experts, busiest rank / mean rank", theme.SeriesP50, func(p *store.RatePoint) float32 { return p.RankImbalance }, false},
	{"Cache hits, share of prompt tokens", theme.SeriesP50, func(p *store.RatePoint) float32 { return p.CacheHits }, true},
	{"Accepted drafts, share of drafted tokens", theme.SeriesDecode, func(p *store.RatePoint) float32 { return p.Accepted }, true},
	{"Decode bandwidth, share of read bandwidth", theme.SeriesDecode, func(p *store.RatePoint) float32 { return p.ReadShare }, true},
	{"Preemptions per second", theme.SeriesP99, func(p *store.RatePoint) float32 { return p.Preempted }, false},
}

// drawReported draws one of them, on a scale that ends at 1 or above.
func drawReported(a grid.Area, f *pane.Frame, pts []store.RatePoint, name string, share bool, curves grid.Curves) {
	a.Text(0, 0, pane.Heading, name)
	curves.Top = max(pane.ScaleTop(len(pts), func(i int) float64 { return curves.At(0, i) }), 1)
	if share {
		curves.Label = func(v, _ float64) string { return metric.Percent(v) }
	}
	pane.DrawCurves(a.Sub(0, 1, a.W, a.H-1), f, pts[len(pts)-1].At, pane.CountAxis, curves)
}

// drawKVChart draws the KV cache cells in use.
func drawKVChart(a grid.Area, f *pane.Frame, pts []store.RatePoint, total int64) {
	l := a.Line(0, 0)
	l.Put(pane.Heading, "KV cache, cells in use").Put(pane.Dim, "  of "+strconv.Itoa(int(total)))
	used := func(_, i int) float64 { return pane.RateOrGap(&pts[i], float64(pts[i].KVUsed)) }
	pane.DrawCurves(a.Sub(0, 1, a.W, a.H-1), f, pts[len(pts)-1].At, pane.CountAxis, grid.Curves{
		N: len(pts), At: used, Roles: []theme.Role{theme.SeriesP50}, Log: f.LogAxis, Fill: true, Whole: true,
	})
}

// drawWholeSession lists session totals.
func drawWholeSession(r *pane.RowWriter, s *store.Snapshot) {
	n, t := s.Counts, s.Totals()
	cached := func(v float64) string { return pane.AtLeast(metric.Count(v), t.CachedAtLeast) }
	for _, v := range []struct {
		name string
		r    event.Reading
		f    func(float64) string
		unit string
	}{
		{"TTPS all", s.Throughput.SessionTTPS, metric.Rate, "tok/s"},
		{"goodput", s.Latency.Goodput, metric.Rate, "req/s"},
		{"steps", t.Steps, metric.Count, ""},
		{"cached", t.Cached, cached, "tokens"},
		{"padding", t.Padding, metric.Count, "tokens"},
	} {
		if v.r.Origin == event.NotReported {
			continue
		}
		pane.PutReading(r.Next(v.name), v.r, v.f, v.unit, pane.Plain)
	}
	if n.Unmeasured > 0 {
		r.Next("untracked").Text(1, 0, pane.Watch, pane.CountOf(n.Unmeasured, "request", "requests")+" above "+metric.Count(store.MaxOpen)+" concurrent")
	}
	if more := n.OmittedGroups + n.OmittedRequests; more > 0 {
		r.Next("omitted").Text(1, 0, pane.Dim, pane.CountOf(n.OmittedRequests, "request", "requests")+", "+pane.CountOf(n.OmittedGroups, "group", "groups"))
	}
}
