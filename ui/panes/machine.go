package panes

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

func drawMachine(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "CPU, memory, disk, GPU")
	if c.noMachine(in, s) {
		return
	}
	r := rowWriter{a: in}
	drawCores(&r, s, c, in.H-4)
	drawProcess(&r, s, c)
	drawMemory(&r, s, c)
	if in.H < 9 {
		drawDiskShort(&r, s)
	} else {
		drawDisk(&r, s)
	}
	drawGPUs(&r, s, c)
	drawScheduling(&r, s)
	pts := s.Host.Series
	r.trend("CPU", len(pts), func(i int) float64 { return pts[i].V[event.GaugeCPU] }, 1, theme.SeriesPrefill, theme.AreaPrefill, c)
}

// noMachine draws why there is no host sample; false if there is one. llmtop samples the host itself for engines on
// this machine.
func (c *Ctx) noMachine(a grid.Area, s *store.Snapshot) bool {
	if s.Host.Sampled {
		return false
	}
	words := "no host sample yet"
	if s.Engine.Remote.Link != event.LinkNone && !c.caps.Has(event.CapHost) {
		words = "machine: not reported by this engine"
	}
	c.absent(a, dim, words, "")
	return true
}

// drawCores draws the CPU of the machine and each core: one gauge per core if limit rows are enough, otherwise one
// column per core.
func drawCores(r *rowWriter, s *store.Snapshot, c *Ctx, limit int) {
	h := s.Host
	a, ok := r.next("CPU")
	if !ok {
		return
	}
	gl := c.Skin.Glyphs
	if h.CPU.OK() {
		a.Right(valueWidth-2, 0, data, metric.Percent(h.CPU.V))
		a.Bar(valueWidth-1, 0, a.W-valueWidth+1, h.CPU.V, theme.SeriesPrefill, c.Skin.Colour(), gl)
	} else {
		a.Text(1, 0, dim, h.CPU.Origin.String())
	}
	if limit < 3 {
		return
	}
	if n := len(h.Cores); n > limit-1 || n > 16 {
		drawCoreColumns(r, h.Cores, gl)
		return
	}
	for i, v := range h.Cores {
		a, ok := r.next("core " + itoa(i))
		if !ok {
			return
		}
		a.Right(valueWidth-2, 0, text, metric.Percent(v))
		a.Bar(valueWidth-1, 0, a.W-valueWidth+1, v, theme.SeriesPrefill, c.Skin.Colour(), gl)
	}
}

func drawCoreColumns(r *rowWriter, cores []float64, gl *theme.Glyphs) {
	for i := 0; i < len(cores); {
		name := ""
		if i == 0 {
			name = itoa(len(cores)) + " cores"
		}
		a, ok := r.next(name)
		if !ok || a.W < 2 {
			return
		}
		for x := 1; x < a.W && i < len(cores); x++ {
			a.Column(x, 0, 1, cores[i], grid.Fg(theme.SeriesPrefill), gl)
			i++
		}
		if r.y > 4 {
			return
		}
	}
}

func drawProcess(r *rowWriter, s *store.Snapshot, c *Ctx) {
	a, ok := r.next("engine")
	if !ok {
		return
	}
	p := s.Host.Engine
	l := a.Line(1, 0)
	if !p.CPU.OK() {
		l.Put(dim, p.CPU.Origin.String())
		return
	}
	l.Tail(valueWidth-3, data, metric.Rate(p.CPU.V)).Put(dim, " cores")
	if s.Host.CPULimit.OK() {
		l.Fit(grid.Piece{Style: dim, Words: " of "}, grid.Piece{Style: text, Words: metric.Rate(s.Host.CPULimit.V)}, grid.Piece{Style: dim, Words: " limit"})
	}
	if p.Threads.OK() {
		l.Fit(grid.Piece{Style: text, Words: "  " + metric.Count(p.Threads.V)}, grid.Piece{Style: dim, Words: " threads"})
	}
}

func drawMemory(r *rowWriter, s *store.Snapshot, c *Ctx) {
	a, ok := r.next("RSS")
	if !ok {
		return
	}
	p := s.Host.Engine
	if !p.RSS.OK() {
		a.Text(1, 0, dim, p.RSS.Origin.String())
		return
	}
	l := a.Line(1, 0)
	l.Put(data, metric.Bytes(p.RSS.V))
	if p.Peak.OK() {
		l.Fit(grid.Piece{Style: dim, Words: " peak "}, grid.Piece{Style: text, Words: metric.Bytes(p.Peak.V)})
	}
	if s.Host.MemTotal.OK() && l.Fit(grid.Piece{Style: dim, Words: " of "}, grid.Piece{Style: text, Words: metric.Bytes(s.Host.MemTotal.V)}) && s.Host.Limited {
		l.Fit(grid.Piece{Style: dim, Words: " limit"})
	}
}

func drawDisk(r *rowWriter, s *store.Snapshot) {
	p := s.Host.Engine
	for _, d := range [...]struct {
		name       string
		bytes, ops event.Reading
	}{{"read", p.Read, p.ReadOps}, {"write", p.Write, p.WriteOps}} {
		a, ok := r.next(d.name)
		if !ok {
			return
		}
		l := a.Line(1, 0)
		if !d.bytes.OK() {
			l.Put(dim, d.bytes.Origin.String())
			continue
		}
		l.Put(data, metric.Bytes(d.bytes.V)+"/s")
		if d.ops.OK() {
			l.Fit(grid.Piece{Style: text, Words: "  " + metric.Rate(d.ops.V)}, grid.Piece{Style: dim, Words: " op/s"})
		}
	}
}

// drawDiskShort draws disk reads and writes in one row.
func drawDiskShort(r *rowWriter, s *store.Snapshot) {
	a, ok := r.next("disk")
	if !ok {
		return
	}
	p := s.Host.Engine
	l := a.Line(1, 0)
	if !p.Read.OK() || !p.Write.OK() {
		l.Put(dim, p.Read.Origin.String())
		return
	}
	l.Put(dim, "r ").Put(data, metric.Bytes(p.Read.V)+"/s")
	l.Fit(grid.Piece{Style: dim, Words: " w "}, grid.Piece{Style: data, Words: metric.Bytes(p.Write.V) + "/s"})
}

func drawGPUs(r *rowWriter, s *store.Snapshot, c *Ctx) {
	if len(s.Host.GPUs) == 0 {
		if a, ok := r.next("GPU"); ok {
			why := s.Host.NoGPU
			if why == "" {
				why = event.NotReported.String()
			}
			a.Elide(1, 0, a.W-1, dim, sanitize.Line(why), c.Skin.Glyphs.Ellipsis)
		}
		return
	}
	for i, g := range s.Host.GPUs {
		a, ok := r.next("GPU " + itoa(i))
		if !ok {
			return
		}
		l := a.Line(1, 0)
		l.Put(data, metric.Reading(g.Util, metric.Percent)).Put(dim, "  ").Put(text, metric.Reading(g.MemUsed, metric.Bytes))
		if g.MemTotal.OK() {
			l.Put(dim, " of ").Put(text, metric.Bytes(g.MemTotal.V))
		}
		if g.Power.OK() {
			l.Fit(grid.Piece{Style: text, Words: "  " + metric.Rate(g.Power.V) + " W"})
		}
		if g.Temperature.OK() {
			l.Fit(grid.Piece{Style: text, Words: "  " + metric.Rate(g.Temperature.V) + " °C"})
		}
	}
}

// drawScheduling draws the run queue wait of the engine, the load of the machine and the CPU clock.
func drawScheduling(r *rowWriter, s *store.Snapshot) {
	a, ok := r.next("run wait")
	if !ok {
		return
	}
	l := a.Line(1, 0)
	l.Put(text, metric.Reading(s.Host.Engine.RunWait, metric.Percent))
	if s.Host.Load1.OK() {
		l.Fit(grid.Piece{Style: dim, Words: "  load "}, grid.Piece{Style: text, Words: metric.Rate(s.Host.Load1.V)})
	}
	if s.Host.Frequency.OK() {
		l.Fit(grid.Piece{Style: text, Words: "  " + metric.Hertz(s.Host.Frequency.V)})
	}
}
