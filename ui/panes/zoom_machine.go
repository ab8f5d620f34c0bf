package panes

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// zoomMachine shows the numbers at the left and their course at the right.
func zoomMachine(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "CPU, memory, disk, GPU; the course of the session's last samples")
	if c.noMachine(in, s) {
		return
	}
	left := min(max(in.W/3, 34), 60)
	r := rows{a: in.Sub(0, 0, left, in.H)}
	drawCores(&r, s, c, in.H-12)
	drawProcess(&r, s, c)
	drawMemory(&r, s, c)
	drawDisk(&r, s)
	drawGPUs(&r, s, c)
	drawScheduling(&r, s)
	drawSelf(&r, s)
	right := in.Sub(left+2, 0, in.W-left-2, in.H)
	if right.W < 30 || len(s.Host.Series) < 2 {
		return
	}
	h := right.H / 3
	drawCPUChart(right.Sub(0, 0, right.W, h), s, c)
	drawRSSChart(right.Sub(0, h, right.W, h), s, c)
	drawDiskChart(right.Sub(0, 2*h, right.W, right.H-2*h), s, c)
}

// drawSelf shows what llmtop itself costs.
func drawSelf(r *rows, s *store.Snapshot) {
	p := s.Host.Self
	for _, v := range []struct {
		name string
		r    event.Reading
		f    func(float64) string
	}{
		{"self CPU", p.CPU, metric.Percent},
		{"outside", p.OutsideEngine, metric.Percent},
		{"self RSS", p.RSS, metric.Bytes},
		{"GC pause", p.GCPause, nanoseconds},
		{"GC runs", p.GCCount, metric.Count},
		{"faults", s.Host.Engine.Faults, metric.Rate},
	} {
		a, ok := r.next(v.name)
		if !ok {
			return
		}
		l := a.Line(1, 0)
		l.Put(text, metric.Reading(v.r, v.f))
	}
}

// hostChart draws curves over the host's samples under a title with their names in their colours.
func hostChart(a grid.Area, chart *grid.Chart, s *store.Snapshot, c *Ctx, title string, names []string,
	roles []theme.Role, at func(p store.HostPoint, k int) float64, units []axisUnit,
) {
	pts := s.Host.Series
	l := a.Line(0, 0)
	l.Put(head, title).Gap(2)
	for k, n := range names {
		l.Put(grid.Fg(roles[k]), n).Gap(2)
	}
	top := 0.0
	for k := range roles {
		top = max(top, highest(len(pts), func(i int) float64 { return at(pts[i], k) }))
	}
	if top <= 0 {
		a.Text(0, 1, dim, "nothing above 0, or not reported")
		return
	}
	chart.Draw(a.Sub(0, 1, a.W, a.H-2), grid.Curves{
		N: len(pts), Top: top, Stamp: int64(pts[len(pts)-1].At), Roles: roles,
		Label: label(units, top),
		At:    func(k, i int) float64 { return at(pts[i], k) },
	}, c.Skin)
}

func drawCPUChart(a grid.Area, s *store.Snapshot, c *Ctx) {
	hostChart(a, &c.Memory.cpu, s, c, "CPU", []string{"machine", "engine, cores"},
		[]theme.Role{theme.SeriesPrefill, theme.SeriesDecode},
		func(p store.HostPoint, k int) float64 {
			if k == 0 {
				return p.CPU
			}
			return p.EngineCPU
		}, countAxis)
}

func drawRSSChart(a grid.Area, s *store.Snapshot, c *Ctx) {
	hostChart(a, &c.Memory.memory, s, c, "Memory", []string{"engine RSS"}, []theme.Role{theme.SeriesP50},
		func(p store.HostPoint, _ int) float64 { return p.RSS }, byteAxis)
}

func drawDiskChart(a grid.Area, s *store.Snapshot, c *Ctx) {
	hostChart(a, &c.Memory.disk, s, c, "Disk", []string{"read/s", "write/s"}, []theme.Role{theme.SeriesRead, theme.SeriesWrite},
		func(p store.HostPoint, k int) float64 {
			if k == 0 {
				return p.Read
			}
			return p.Write
		}, byteAxis)
}
