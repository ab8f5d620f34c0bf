package system

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// gpuColumns are the columns of the table of accelerators. Those at the end are left out where there is no room.
var gpuColumns = [...]struct {
	title string
	width int
	write func(g *event.GPU) string
}{
	{"busy", 6, func(g *event.GPU) string { return known(g.Util, metric.Percent) }},
	{"engine", 8, func(g *event.GPU) string { return known(g.EngineUtil, metric.Percent) }},
	{"memory", 20, func(g *event.GPU) string { return ofLimit(g.MemUsed, g.MemTotal, metric.Bytes) }},
	{"power", 15, func(g *event.GPU) string { return ofLimit(g.Power, g.PowerLimit, watts) }},
	{"clock", 10, func(g *event.GPU) string { return known(g.Clock, hertz) }},
	{"slowed by", 13, slowedBy},
	{"heat", 9, func(g *event.GPU) string { return known(g.Temperature, celsius) }},
	{"DRAM", 6, func(g *event.GPU) string { return known(g.DRAM, metric.Percent) }},
	{"PCIe in", 13, func(g *event.GPU) string { return known(g.PCIeIn, metric.BytesPerSecond) }},
	{"out", 13, func(g *event.GPU) string { return known(g.PCIeOut, metric.BytesPerSecond) }},
	{"SM", 6, func(g *event.GPU) string { return known(g.SM, metric.Percent) }},
	{"tensor", 8, func(g *event.GPU) string { return known(g.Tensor, metric.Percent) }},
	{"NVLink in", 13, func(g *event.GPU) string { return known(g.NVLinkIn, metric.BytesPerSecond) }},
	{"out", 13, func(g *event.GPU) string { return known(g.NVLinkOut, metric.BytesPerSecond) }},
}

// gpuAlways is the number of columns that are shown even if no accelerator reports them.
const gpuAlways = 7

func known(r event.Reading, f func(float64) string) string {
	if !r.OK() {
		return "-"
	}
	return f(r.V)
}

// ofLimit writes "698 of 700 W": the unit once if both have it.
func ofLimit(r, limit event.Reading, f func(float64) string) string {
	if !r.OK() || !limit.OK() {
		return known(r, f)
	}
	words, of := f(r.V), f(limit.V)
	value, unit, _ := strings.Cut(words, " ")
	if strings.HasSuffix(of, " "+unit) {
		words = value
	}
	return words + " of " + of
}

// slowedBy names why the clocks of a GPU are low; "" if they are not.
func slowedBy(g *event.GPU) string {
	for _, why := range [...]struct {
		r    event.Reading
		name string
	}{{g.PowerBraked, "power brake"}, {g.ThermallySlowed, "heat"}, {g.PowerCapped, "power cap"}} {
		if why.r.OK() && why.r.V > 0 {
			return why.name
		}
	}
	return ""
}

// ofEngine reports whether the engine has memory on a GPU.
func ofEngine(g *event.GPU) bool { return g.EngineMem.OK() && g.EngineMem.V > 0 }

// gpuTable draws a row for each of several accelerators, in half of the area at most: of more, those of the engine first,
// until the view is scrolled. It returns the rows used.
func gpuTable(a grid.Area, s *store.Snapshot, m *Table) (rows int) {
	list := s.Host.GPUs
	if m.hidden = 0; len(list) < 2 || a.H < 6 {
		return 0
	}
	x := gaugeName
	var shown []int
	for i, k := range gpuColumns {
		if i >= gpuAlways && !slices.ContainsFunc(list, func(g event.GPU) bool { return k.write(&g) != "-" }) {
			continue
		}
		if x+k.width > a.W {
			break
		}
		x, shown = x+k.width, append(shown, i)
		a.Right(x, 0, pane.Heading, k.title)
	}
	order, room := make([]int, len(list)), a.H/2-1
	for i := range order {
		order[i] = i
	}
	m.hidden = max(len(list)-room-1, 0)
	if m.hidden > 0 && m.First == 0 {
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(list[j].EngineMem.V, list[i].EngineMem.V) })
		slices.Sort(order[:room])
	}
	order = order[min(m.First, m.hidden):]
	for n, i := range order {
		if rows = n + 1; rows > room && rows < len(order) {
			a.Text(0, rows, pane.Dim, strconv.Itoa(len(order)-n)+" more GPUs: down")
			break
		}
		drawGPU(a.Sub(0, rows, a.W, 1), i, shown, s)
	}
	return rows + 1
}

func drawGPU(a grid.Area, i int, columns []int, s *store.Snapshot) {
	g, x := &s.Host.GPUs[i], gaugeName
	if ofEngine(g) {
		a.Text(0, 0, pane.Loud, gpuTitle(i)+" engine")
	} else {
		a.Text(0, 0, pane.Dim, gpuTitle(i))
	}
	for _, c := range columns {
		k := &gpuColumns[c]
		x += k.width
		st := pane.Plain
		if k.title == "slowed by" {
			st = pane.Watch
		}
		a.Right(x, 0, st, k.write(g))
	}
	l := a.Line(x+2, 0)
	l.Fit(grid.Piece{Style: pane.Dim, Words: sanitize.Line(g.Name)})
}

func gpuTitle(i int) string { return "GPU " + strconv.Itoa(i) }

// The details of the gauges of accelerators.

func gpuName(s *store.Snapshot, _ *pane.Frame) string {
	n, name := 0, ""
	for i := range s.Host.GPUs {
		if g := &s.Host.GPUs[i]; s.Host.Folds(g) {
			n, name = n+1, g.Name
		}
	}
	if n > 1 {
		return strconv.Itoa(n) + " GPUs, mean"
	}
	return sanitize.Line(name)
}

// foldedGPUs returns a reading folded over all GPUs.
func foldedGPUs(s *store.Snapshot, alert string) event.Reading {
	for i := range event.HostReadings {
		if r := &event.HostReadings[i]; r.Alert == alert {
			return r.Of(s.Host.Host)
		}
	}
	return event.Reading{}
}

// gpuDetail returns a detail that names a folded reading: "of 80.0 GB".
func gpuDetail(words, alert string, f func(float64) string) func(*store.Snapshot, *pane.Frame) string {
	return func(s *store.Snapshot, _ *pane.Frame) string {
		if r := foldedGPUs(s, alert); r.OK() && r.V > 0 {
			return fmt.Sprintf(words, f(r.V))
		}
		return ""
	}
}

// gpuClock returns the highest clock, or why GPUs do not reach it.
func gpuClock(s *store.Snapshot, f *pane.Frame) string {
	var slowed []string
	for i := range s.Host.GPUs {
		if why := slowedBy(&s.Host.GPUs[i]); why != "" && !slices.Contains(slowed, why) {
			slowed = append(slowed, why)
		}
	}
	if len(slowed) > 0 {
		return "slowed: " + strings.Join(slowed, ", ")
	}
	return gpuDetail("of %s", "gpu_clock_max", hertz)(s, f)
}

// gpuDRAM returns the bandwidth behind the share.
func gpuDRAM(s *store.Snapshot, _ *pane.Frame) string {
	share, all := event.GaugeGPUDRAM.Reading(s.Host.Host), foldedGPUs(s, "gpu_memory_bandwidth")
	if !share.OK() || !all.OK() {
		return ""
	}
	return ofLimit(event.DerivedValue(share.V*all.V), all, metric.BytesPerSecond)
}
