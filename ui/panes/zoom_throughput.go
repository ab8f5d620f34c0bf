package panes

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// zoomThroughput draws all throughput numbers at the left and their charts at the right.
func zoomThroughput(a grid.Area, s *store.Snapshot, c *Ctx) {
	if len(s.Requests) == 0 && s.Aggregates == nil {
		drawThroughput(a, s, c)
		return
	}
	in := c.frame(a, "tokens per second, queue and KV cache")
	left := min(max(in.W/3, 38), 56)
	r := rowWriter{a: in.Sub(0, 0, left, in.H)}
	drawRates(&r, s, c)
	drawRequests(&r, s)
	drawKV(&r, s, c)
	drawBandwidth(&r, s, c)
	extraRows(&r, s, c)
	drawTotals(&r, s)
	drawWholeSession(&r, s)
	drawGroups(&r, s)
	pts := s.Throughput.Series
	right := in.Sub(left+2, 0, in.W-left-2, in.H)
	if right.W < 30 || len(pts) < 2 {
		return
	}
	upper := right.H
	if s.KV.Total > 0 && right.H >= 20 {
		upper = right.H * 3 / 5
		drawKVChart(right.Sub(0, upper, right.W, right.H-upper), pts, s.KV.Total, c)
	}
	drawRatesChart(right.Sub(0, 0, right.W, upper-1), pts, c)
}

func drawRatesChart(a grid.Area, pts []store.RatePoint, c *Ctx) {
	l := a.Line(0, 0)
	l.Put(head, "Tokens per second").Gap(2).Put(grid.Fg(theme.SeriesDecode), "decode").Gap(2).Put(grid.Fg(theme.SeriesPrefill), "prefill")
	at := func(k, i int) float64 {
		if k == 0 {
			return rateOrGap(&pts[i], pts[i].Prefill)
		}
		return rateOrGap(&pts[i], pts[i].Decode)
	}
	top := max(scaleTop(len(pts), func(i int) float64 { return at(0, i) }), scaleTop(len(pts), func(i int) float64 { return at(1, i) }))
	c.Scratch.Chart("rates").Draw(a.Sub(0, 1, a.W, a.H-1), grid.Curves{
		N: len(pts), At: at, Top: top, Stamp: stamp(pts),
		Roles: []theme.Role{theme.SeriesPrefill, theme.SeriesDecode}, Label: axisLabel(countAxis, top),
	}, c.Skin)
	c.chartMarks(a.Sub(chartAxisWidth, 1, a.W-chartAxisWidth, a.H-1), pts[len(pts)-1].At, len(pts))
}

// drawKVChart draws the KV cache cells in use.
func drawKVChart(a grid.Area, pts []store.RatePoint, total int64, c *Ctx) {
	l := a.Line(0, 0)
	l.Put(head, "KV cache, cells in use").Put(dim, "  of "+strconv.Itoa(int(total)))
	used := func(_, i int) float64 { return rateOrGap(&pts[i], float64(pts[i].KVUsed)) }
	top := scaleTop(len(pts), func(i int) float64 { return used(0, i) })
	c.Scratch.Chart("kv").Draw(a.Sub(0, 1, a.W, a.H-1), grid.Curves{
		N: len(pts), At: used, Top: top, Stamp: stamp(pts), Roles: []theme.Role{theme.SeriesP50}, Label: axisLabel(countAxis, top),
	}, c.Skin)
	c.chartMarks(a.Sub(chartAxisWidth, 1, a.W-chartAxisWidth, a.H-1), pts[len(pts)-1].At, len(pts))
}

// stamp returns a value that changes when a point is added or the last one grows.
func stamp(pts []store.RatePoint) int64 {
	p := pts[len(pts)-1]
	return int64(p.At)*31 + int64(p.Generated)*7 + int64(p.KVUsed)
}

// drawWholeSession lists session totals.
func drawWholeSession(r *rowWriter, s *store.Snapshot) {
	n := s.Counts
	for _, v := range []struct {
		name string
		r    event.Reading
		f    func(float64) string
		unit string
	}{
		{"TTPS all", s.Throughput.SessionTTPS, metric.Rate, "tok/s"},
		{"goodput", s.Latency.Goodput, metric.Rate, "req/s"},
		{"steps", event.MeasuredValue(float64(n.Steps)), metric.Count, ""},
		{"cached", event.MeasuredValue(float64(n.CachedTokens)), metric.Count, "tokens"},
		{"padding", event.MeasuredValue(float64(n.PadTokens)), metric.Count, "tokens"},
	} {
		a, ok := r.next(v.name)
		if !ok {
			return
		}
		putReading(a, v.r, v.f, v.unit, text)
	}
	if n.Unmeasured > 0 {
		if a, ok := r.next("untracked"); ok {
			a.Text(1, 0, watch, countOf(n.Unmeasured, "request", "requests")+" above "+metric.Count(store.MaxOpen)+" concurrent")
		}
	}
	if more := n.OmittedGroups + n.OmittedRequests; more > 0 {
		if a, ok := r.next("omitted"); ok {
			a.Text(1, 0, dim, countOf(n.OmittedRequests, "request", "requests")+", "+countOf(n.OmittedGroups, "group", "groups"))
		}
	}
}
