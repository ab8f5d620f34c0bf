package panes

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// drawQueue draws how many requests ran and waited, and how full the KV cache was, second by second.
func drawQueue(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "requests and KV cache, a column a second", "requests and KV cache")
	running, queued, pts := runningOf(s), queuedOf(s), s.Throughput.Series
	if !running.OK() && !queued.OK() && !s.KV.Usage.OK() {
		c.absent(in, dim, "requests and KV cache: not reported by this engine", "")
		return
	}
	l := in.Line(0, 0)
	counted(&l, "running", running, theme.SeriesDecode, data)
	queuedStyle := data
	if queued.OK() && queued.V > 0 {
		queuedStyle = watch
	}
	counted(&l, "waiting", queued, theme.SeriesPrefill, queuedStyle)
	if len(pts) < 2 || in.H < 4 {
		return
	}
	body := in.Sub(0, 1, in.W, in.H-1)
	if s.KV.Usage.OK() && body.H >= 8 {
		lower := body.H * 2 / 5
		c.fillChart(body.Sub(0, body.H-lower, body.W, lower), s, pts)
		body = body.Sub(0, 0, body.W, body.H-lower)
	}
	at := func(k, i int) float64 {
		switch {
		case k == 0 && queued.OK():
			return heard(&pts[i], float64(pts[i].Queued))
		case k == 1 && running.OK():
			return heard(&pts[i], float64(pts[i].Running))
		}
		return math.NaN()
	}
	top := max(highest(len(pts), func(i int) float64 { return at(0, i) }), highest(len(pts), func(i int) float64 { return at(1, i) }))
	last := &pts[len(pts)-1]
	c.Memory.queue.Draw(body, grid.Curves{
		N: len(pts), At: at, Top: top, Stamp: int64(last.At)*31 + int64(last.Running)*7 + int64(last.Queued),
		Roles: []theme.Role{theme.SeriesPrefill, theme.SeriesDecode}, Label: label(countAxis, top),
	}, c.Skin)
	c.courseMarks(body.Sub(courseAxis, 0, body.W-courseAxis, body.H), last.At, len(pts))
}

// counted writes a number of requests in front of its name, which has the colour of its curve.
func counted(l *grid.Line, name string, r event.Reading, curve theme.Role, st grid.Style) {
	l.Put(grid.Fg(curve), name+" ")
	if r.OK() {
		l.Tail(4, st, metric.Count(r.V)).Gap(3)
		return
	}
	l.Put(dim, r.Why()).Gap(3)
}

// fillChart draws the share of the KV cache that was in use.
func (c *Ctx) fillChart(a grid.Area, s *store.Snapshot, pts []store.RatePoint) {
	l := a.Line(0, 0)
	l.Put(grid.Fg(theme.SeriesP50), "KV cache ").Tail(5, data, metric.Percent(s.KV.Usage.V))
	if s.KV.Total > 0 {
		l.Fit(grid.Piece{Style: dim, Words: "   " + itoa(int(s.KV.Used)) + " of " + itoa(int(s.KV.Total)) + " cells"})
	}
	last := &pts[len(pts)-1]
	plot := a.Sub(0, 1, a.W, a.H-1)
	c.Memory.fill.Draw(plot, grid.Curves{
		N: len(pts), At: func(_, i int) float64 { return pts[i].KVShare }, Top: 1, Stamp: int64(last.At)*31 + int64(last.KVShare*1e6),
		Roles: []theme.Role{theme.SeriesP50}, Label: func(v, _ float64) string { return metric.Percent(v) },
	}, c.Skin)
	c.courseMarks(plot.Sub(courseAxis, 0, plot.W-courseAxis, plot.H), last.At, len(pts))
}
