package system

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

func DrawPane(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in := f.Box(a, pane.WithAge([]string{"CPU, memory, disk, GPU"}, sampleAge(s))...)
	if noMachine(in, s, f) {
		return
	}
	r := pane.RowWriter{A: in}
	drawCores(&r, s, f, in.H-4)
	short := in.H < 9
	early := short && len(s.Host.GPUs) > 0 // before what does not fit
	if early {
		drawGPUs(&r, s, f)
	}
	switch {
	case unknownProcess(s):
	case short:
		drawProcess(&r, s, f)
		drawMemory(&r, s, f)
		drawDiskShort(&r, s)
	default:
		drawProcess(&r, s, f)
		drawMemory(&r, s, f)
		drawDisk(&r, s)
	}
	if !early {
		drawGPUs(&r, s, f)
	}
	drawScheduling(&r, s)
	pts := s.Host.Series
	r.Trend(f, "CPU", len(pts), func(i int) float64 { return pts[i].V[event.GaugeCPU] }, 1, theme.SeriesPrefill, theme.AreaPrefill)
}

// sampleAge returns how old the last sample of the machine is, "" while samples come: as a rule one a second.
func sampleAge(s *store.Snapshot) string {
	const late = 5 * time.Second
	age := time.Duration(s.Now - s.Host.At)
	if !s.Host.Sampled || age < max(late, 3*time.Duration(s.Host.Interval)) {
		return ""
	}
	return pane.Ago(age)
}

// unknownProcess reports whether nothing is known of the engine's process, as of a server that is not on this machine.
func unknownProcess(s *store.Snapshot) bool {
	p := &s.Host.Engine
	return p.CPU.Origin == event.NotReported && p.RSS.Origin == event.NotReported
}

// noMachine draws why there is no host sample; false if there is one. llmtop samples the host itself for engines on
// this machine.
func noMachine(a grid.Area, s *store.Snapshot, f *pane.Frame) bool {
	switch {
	case s.Host.Sampled:
		return false
	case s.NeverReached():
		return f.Waiting(a, s)
	}
	words := "no host sample yet"
	if s.Engine.Remote.Link != event.LinkNone && !s.Engine.Caps.Has(event.CapHost) {
		words = "machine: not reported by this engine"
	}
	f.Absent(a, pane.Dim, words, "")
	return true
}

// drawCores draws the CPU of the machine and each core: one gauge per core if limit rows are enough, otherwise one
// column per core.
func drawCores(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame, limit int) {
	h := s.Host
	a := r.Next("CPU")
	gl := f.Skin.Glyphs
	if h.CPU.OK() {
		a.Right(pane.ValueWidth-2, 0, pane.Data, metric.Percent(h.CPU.V))
		a.Bar(pane.ValueWidth-1, 0, a.W-pane.ValueWidth+1, h.CPU.V, theme.SeriesPrefill, f.Skin.Colour(), gl)
	} else {
		a.Text(1, 0, pane.Dim, h.CPU.Origin.String())
	}
	if limit < 3 {
		return
	}
	if n := len(h.Cores); n > limit-1 || n > 16 {
		drawCoreColumns(r, h.Cores, gl)
		return
	}
	for i, v := range h.Cores {
		a := r.Next("core " + strconv.Itoa(i))
		a.Right(pane.ValueWidth-2, 0, pane.Plain, metric.Percent(v))
		a.Bar(pane.ValueWidth-1, 0, a.W-pane.ValueWidth+1, v, theme.SeriesPrefill, f.Skin.Colour(), gl)
	}
}

func drawCoreColumns(r *pane.RowWriter, cores []float64, gl *theme.Glyphs) {
	for i := 0; i < len(cores); {
		name := ""
		if i == 0 {
			name = strconv.Itoa(len(cores)) + " cores"
		}
		a := r.Next(name)
		if a.W < 2 {
			return
		}
		for x := 1; x < a.W && i < len(cores); x++ {
			a.Column(x, 0, 1, cores[i], grid.Fg(theme.SeriesPrefill), gl)
			i++
		}
		if r.Y > 4 {
			return
		}
	}
}

func drawProcess(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	p := s.Host.Engine
	l := r.Next("engine").Line(1, 0)
	if !p.CPU.OK() {
		l.Put(pane.Dim, p.CPU.Origin.String())
		return
	}
	value, unit, _ := strings.Cut(metric.Cores(p.CPU.V), " ")
	l.Put(pane.Data, value).Gap(1)
	l.Put(pane.Dim, pane.FirstFitting(l.Room(), unit, strings.Replace(unit, "of a core", "CPU", 1)))
	pane.FitReading(&l, "  limit ", s.Host.CPULimit, metric.Cores, "")
	pane.FitReading(&l, "  ", p.Threads, metric.Count, " threads")
}

func drawMemory(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	a, p := r.Next("RSS"), s.Host.Engine
	if !p.RSS.OK() {
		a.Text(1, 0, pane.Dim, p.RSS.Origin.String())
		return
	}
	l := a.Line(1, 0)
	l.Put(pane.Data, metric.Bytes(p.RSS.V))
	pane.FitReading(&l, " peak ", p.Peak, metric.Bytes, "")
	if pane.FitReading(&l, " of ", s.Host.MemTotal, metric.Bytes, "") && s.Host.Limited {
		l.Fit(grid.Piece{Style: pane.Dim, Words: " limit"})
	}
}

func drawDisk(r *pane.RowWriter, s *store.Snapshot) {
	p := s.Host.Engine
	for _, d := range [...]struct {
		name         string
		bytes, calls event.Reading
	}{{"read", p.Read, p.ReadOps}, {"write", p.Write, p.WriteOps}} {
		l := r.Next(d.name).Line(1, 0)
		if !d.bytes.OK() {
			l.Put(pane.Dim, d.bytes.Origin.String())
			continue
		}
		l.Put(pane.Data, metric.Bytes(d.bytes.V)+"/s")
		pane.FitReading(&l, "  ", d.calls, metric.Rate, " calls/s")
	}
}

// drawDiskShort draws disk reads and writes in one row.
func drawDiskShort(r *pane.RowWriter, s *store.Snapshot) {
	p := s.Host.Engine
	l := r.Next("disk").Line(1, 0)
	if !p.Read.OK() || !p.Write.OK() {
		l.Put(pane.Dim, p.Read.Origin.String())
		return
	}
	l.Put(pane.Dim, "r ").Put(pane.Data, metric.Bytes(p.Read.V)+"/s")
	l.Fit(grid.Piece{Style: pane.Dim, Words: " w "}, grid.Piece{Style: pane.Data, Words: metric.Bytes(p.Write.V) + "/s"})
}

func drawGPUs(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	if len(s.Host.GPUs) == 0 {
		a := r.Next("GPU")
		a.Elide(1, 0, a.W-1, pane.Dim, sanitize.Line(cmp.Or(s.Host.NoGPU, event.NotReported.String())), f.Skin.Glyphs.Ellipsis)
		return
	}
	list, names := s.Host.GPUs, gpuTitle
	if n := len(list); n > 1 && n > (r.A.H-r.Y)/2 { // no room for a row each
		list = []event.GPU{{
			Util: event.GaugeGPU.Reading(s.Host.Host), MemUsed: event.GaugeGPUMemory.Reading(s.Host.Host), MemTotal: foldedGPUs(s, "gpu_memory_limit"),
			Power: event.GaugeGPUPower.Reading(s.Host.Host), Temperature: event.GaugeGPUTemperature.Reading(s.Host.Host),
		}}
		names = func(int) string { return strconv.Itoa(n) + " GPUs" }
	}
	for i, g := range list {
		l := r.Next(names(i)).Line(1, 0)
		l.Put(pane.Data, metric.Reading(g.Util, metric.Percent)).Fit(grid.Piece{Style: pane.Plain, Words: "  " + ofLimit(g.MemUsed, g.MemTotal, metric.Bytes)})
		pane.FitReading(&l, "  ", g.Power, metric.Watts, "")
		pane.FitReading(&l, "  ", g.Temperature, metric.Celsius, "")
	}
}

// drawScheduling draws the run queue wait of the engine, the load of the machine and the CPU clock.
func drawScheduling(r *pane.RowWriter, s *store.Snapshot) {
	name, wait, load := "run wait", metric.Reading(s.Host.Engine.RunWait, metric.Percent), "  load "
	if unknownProcess(s) {
		name, wait, load = "load", "", ""
	}
	l := r.Next(name).Line(1, 0)
	st := pane.Plain
	if !s.Host.Engine.RunWait.OK() {
		st = pane.Dim
	}
	l.Put(st, wait)
	pane.FitReading(&l, load, s.Host.Load1, metric.Rate, "")
	pane.FitReading(&l, "  ", s.Host.Frequency, metric.Hertz, "")
}
