package overview

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// drawQueue draws the running and waiting requests and the KV cache usage per second.
func drawQueue(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in := f.Box(a, "requests and KV cache, 1 column = 1 s", "requests and KV cache")
	running, queued, pts := s.Totals().Running, s.Totals().Queued, f.Rates(s)
	l := in.Line(0, 0)
	putCount(&l, "running", running, theme.SeriesDecode, pane.Data)
	queuedStyle := pane.Data
	if queued.OK() && queued.V > 0 {
		queuedStyle = pane.Watch
	}
	putCount(&l, "waiting", queued, theme.SeriesPrefill, queuedStyle)
	if len(pts) < 2 || in.H < 4 {
		return
	}
	body := in.Sub(0, 1, in.W, in.H-1)
	if s.KV.Usage.OK() && body.H >= 8 {
		lower := body.H * 2 / 5
		fillChart(body.Sub(0, body.H-lower, body.W, lower), s, f, pts)
		body = body.Sub(0, 0, body.W, body.H-lower)
	}
	at := func(k, i int) float64 {
		switch {
		case k == 0 && pts[i].Queued < 0:
		case k == 0 && queued.OK():
			return pane.RateOrGap(&pts[i], float64(pts[i].Queued))
		case k == 1 && running.OK():
			return pane.RateOrGap(&pts[i], float64(pts[i].Running))
		}
		return math.NaN()
	}
	pane.DrawCurves(body, f, pts[len(pts)-1].At, pane.CountAxis, grid.Curves{
		N: len(pts), At: at, Roles: []theme.Role{theme.SeriesPrefill, theme.SeriesDecode}, Log: f.LogAxis, Whole: true,
	})
}

// putCount writes a number of requests after its name, which has the colour of its curve.
func putCount(l *grid.Line, name string, r event.Reading, curve theme.Role, st grid.Style) {
	if r.Origin == event.NotReported {
		return
	}
	l.Put(grid.Fg(curve), name+" ")
	if r.OK() {
		l.Tail(4, st, metric.Count(r.V)).Gap(3)
		return
	}
	l.Put(pane.Dim, r.Absence()).Gap(3)
}

// fillChart draws the KV cache usage.
func fillChart(a grid.Area, s *store.Snapshot, f *pane.Frame, pts []store.RatePoint) {
	l := a.Line(0, 0)
	l.Put(grid.Fg(theme.SeriesP50), "KV cache ").Tail(5, pane.Data, metric.Percent(s.KV.Usage.V))
	if s.KV.Total > 0 {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "   " + strconv.Itoa(int(s.KV.Used)) + " of " + strconv.Itoa(int(s.KV.Total)) + " cells"})
	}
	pane.DrawCurves(a.Sub(0, 1, a.W, a.H-1), f, pts[len(pts)-1].At, nil, grid.Curves{
		N: len(pts), At: func(_, i int) float64 { return pts[i].KVShare }, Top: 1, Roles: []theme.Role{theme.SeriesP50},
		Label: func(v, _ float64) string { return metric.Percent(v) }, Log: f.LogAxis, Fill: true,
	})
}
