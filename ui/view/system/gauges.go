package system

import (
	"math"
	"slices"
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

// gaugeRow is a row of the gauge table.
type gaugeRow struct {
	group   string // group that starts with this row; "" within a group
	name    string
	gauge   store.Gauge
	write   func(float64) string
	detail  func(c *pane.Frame, s *store.Snapshot) string                         // text after the number; nil: none
	noTrend func(c *pane.Frame, s *store.Snapshot) (now event.Reading, or string) // reads a value that has no samples over time; or is shown if it is absent
	gpu     int                                                                   // number of an accelerator from 1, described in words; 0 for all other rows
}

// The formats of the gauges.
var (
	perSecond      = metric.PerSecond
	bytesPerSecond = metric.BytesPerSecond
	cores          = metric.Cores
	watts          = metric.Watts
	celsius        = metric.Celsius
	hertz          = metric.Hertz
)

var gaugeRows = []gaugeRow{
	{group: "Processor", name: "CPU", gauge: store.GaugeCPU, write: metric.Percent, detail: machineCores},
	{name: "clock", gauge: store.GaugeClock, write: hertz},
	{name: "CPU pressure", gauge: store.GaugeCPUPressure, write: metric.Percent},
	{name: "throttled", gauge: store.GaugeThrottled, write: metric.Percent, detail: grantedCores},
	{group: "Engine", name: "engine CPU", gauge: store.GaugeEngineCPU, write: cores, detail: engineThreads},
	{name: "run wait", gauge: store.GaugeRunWait, write: metric.Percent},
	{name: "switches", gauge: store.GaugeVoluntary, write: perSecond},
	{name: "preempted", gauge: store.GaugeInvoluntary, write: perSecond},
	{group: "Memory", name: "memory", gauge: store.GaugeMemory, write: metric.Bytes, detail: memoryLimit},
	{name: "mem pressure", gauge: store.GaugeMemPressure, write: metric.Percent},
	{name: "engine RSS", gauge: store.GaugeRSS, write: metric.Bytes, detail: peakRSS},
	{name: "engine PSS", write: metric.Bytes, noTrend: enginePSS, detail: ageOfPSS},
	{name: "model cached", write: metric.Percent, noTrend: modelCached, detail: modelFile},
	{name: "minor faults", gauge: store.GaugeMinorFaults, write: perSecond},
	{name: "major faults", gauge: store.GaugeMajorFaults, write: perSecond},
	{group: "Disk", name: "disk read", gauge: store.GaugeRead, write: bytesPerSecond, detail: readOps},
	{name: "disk write", gauge: store.GaugeWrite, write: bytesPerSecond, detail: writeOps},
	{name: "I/O pressure", gauge: store.GaugeIOPressure, write: metric.Percent},
	{group: "Network", name: "received", gauge: store.GaugeReceived, write: bytesPerSecond},
	{name: "sent", gauge: store.GaugeSent, write: bytesPerSecond},
	{group: "Energy", name: "CPU power", gauge: store.GaugePower, write: watts, detail: perToken},
	{group: "llmtop", name: "llmtop CPU", gauge: store.GaugeSelfCPU, write: cores, detail: selfShare},
	{name: "llmtop RSS", gauge: store.GaugeSelfRSS, write: metric.Bytes},
	{name: "GC pause", gauge: store.GaugeGCPause, write: pane.Nanoseconds, detail: collections},
}

// gpuRows precede the energy row if the machine has accelerators.
var gpuRows = []gaugeRow{
	{group: "GPU", name: "GPU", gauge: store.GaugeGPU, write: metric.Percent, detail: gpuName},
	{name: "GPU memory", gauge: store.GaugeGPUMemory, write: metric.Bytes, detail: gpuMemory},
	{name: "GPU power", gauge: store.GaugeGPUPower, write: watts},
	{name: "GPU clock", gauge: store.GaugeGPUClock, write: hertz},
	{name: "GPU heat", gauge: store.GaugeGPUTemperature, write: celsius},
}

var noGPURow = gaugeRow{group: "GPU", name: "GPU", noTrend: func(_ *pane.Frame, s *store.Snapshot) (event.Reading, string) {
	why := s.Host.NoGPU
	if why == "" {
		why = event.NotReported.String()
	}
	return event.Reading{}, sanitize.Line(why)
}}

// gaugeList appends the rows for a machine in order to a list, with one row per accelerator if there are several.
func gaugeList(c *pane.Frame, list []gaugeRow, s *store.Snapshot) []gaugeRow {
	for _, r := range gaugeRows {
		if r.group == "Energy" {
			if len(s.Host.GPUs) == 0 {
				list = append(list, noGPURow)
			} else {
				list = append(list, gpuRows...)
			}
			for i := range s.Host.GPUs {
				if len(s.Host.GPUs) > 1 {
					list = append(list, gaugeRow{name: "GPU " + strconv.Itoa(i), gpu: i + 1})
				}
			}
		}
		list = append(list, r)
	}
	return list
}

func machineCores(_ *pane.Frame, s *store.Snapshot) string {
	words := strconv.Itoa(len(s.Host.Cores)) + " cores"
	if s.Host.Load1.OK() {
		words += ", load " + metric.Rate(s.Host.Load1.V)
	}
	return words
}

func grantedCores(_ *pane.Frame, s *store.Snapshot) string {
	if !s.Host.CPULimit.OK() {
		return "no limit"
	}
	return "limit " + cores(s.Host.CPULimit.V)
}

// engineThreads returns the engine's share of the machine and its number of threads.
func engineThreads(_ *pane.Frame, s *store.Snapshot) string {
	words := shareOfMachine(s.Host.Engine.CPU, s)
	if s.Host.Engine.Threads.OK() {
		words += "  " + metric.Count(s.Host.Engine.Threads.V) + " threads"
	}
	return strings.TrimSpace(words)
}

// shareOfMachine formats a CPU time in cores as a share of all cores.
func shareOfMachine(r event.Reading, s *store.Snapshot) string {
	n := len(s.Host.Cores)
	if n == 0 || !r.OK() {
		return ""
	}
	return metric.Percent(r.V/float64(n)) + " of all"
}

func memoryLimit(_ *pane.Frame, s *store.Snapshot) string {
	switch {
	case !s.Host.MemTotal.OK():
		return ""
	case s.Host.Limited:
		return "limit " + metric.Bytes(s.Host.MemTotal.V)
	}
	return "of " + metric.Bytes(s.Host.MemTotal.V)
}

func peakRSS(_ *pane.Frame, s *store.Snapshot) string {
	if !s.Host.Engine.Peak.OK() {
		return ""
	}
	return "peak " + metric.Bytes(s.Host.Engine.Peak.V)
}

// enginePSS returns the last measured PSS of the engine, or how to measure it where that is possible.
func enginePSS(c *pane.Frame, s *store.Snapshot) (event.Reading, string) {
	l := &s.Host.Inspection
	switch {
	case l.PSSAt != 0:
		return l.PSS, l.PSS.Absence()
	case c.Inspect:
		return event.Reading{}, "press i to measure"
	}
	return event.Reading{}, event.NotReported.String()
}

func ageOfPSS(_ *pane.Frame, s *store.Snapshot) string { return age(s, s.Host.Inspection.PSSAt) }

// age returns the time since a moment, "" if the moment never came.
func age(s *store.Snapshot, at event.Time) string {
	if at == 0 {
		return ""
	}
	return metric.Duration(int64(time.Duration(s.Now-at).Round(time.Second))) + " ago"
}

// modelCached returns the share of the model file that is in the page cache.
func modelCached(c *pane.Frame, s *store.Snapshot) (event.Reading, string) {
	switch l := &s.Host.Inspection; {
	case s.Model.Path == "(built in)":
		return event.Reading{}, "built in: no file"
	case l.ModelAt == 0 && c.Inspect:
		return event.Reading{}, event.NotYet.String()
	case l.ModelCached.OK() && l.ModelBytes.OK() && l.ModelBytes.V > 0:
		return event.DerivedValue(l.ModelCached.V / l.ModelBytes.V), ""
	default:
		return event.Reading{}, l.ModelCached.Absence()
	}
}

func modelFile(_ *pane.Frame, s *store.Snapshot) string {
	l := &s.Host.Inspection
	if !l.ModelBytes.OK() {
		return ""
	}
	return "of " + metric.Bytes(l.ModelBytes.V) + ", " + age(s, l.ModelAt)
}

func readOps(_ *pane.Frame, s *store.Snapshot) string  { return formatOps(s.Host.Engine.ReadOps) }
func writeOps(_ *pane.Frame, s *store.Snapshot) string { return formatOps(s.Host.Engine.WriteOps) }

func formatOps(r event.Reading) string {
	if !r.OK() {
		return ""
	}
	return metric.Rate(r.V) + " op/s"
}

func gpuName(_ *pane.Frame, s *store.Snapshot) string {
	if n := len(s.Host.GPUs); n > 1 {
		return strconv.Itoa(n) + " GPUs, mean"
	}
	return sanitize.Line(s.Host.GPUs[0].Name)
}

func gpuMemory(_ *pane.Frame, s *store.Snapshot) string {
	total := 0.0
	for i := range s.Host.GPUs {
		total += s.Host.GPUs[i].MemTotal.V
	}
	if !(total > 0) {
		return ""
	}
	return "of " + metric.Bytes(total)
}

// perToken returns the CPU energy per token over the last sample interval.
func perToken(_ *pane.Frame, s *store.Snapshot) string {
	pts := s.Host.Series
	if len(pts) == 0 {
		return ""
	}
	p := &pts[len(pts)-1]
	if watts := p.V[store.GaugePower]; !math.IsNaN(watts) && p.Tokens > 0 {
		return metric.Rate(watts*p.Interval.Seconds()/float64(p.Tokens)) + " J/token"
	}
	return ""
}

// selfShare returns llmtop's own share of the machine, without the engine.
func selfShare(_ *pane.Frame, s *store.Snapshot) string {
	return shareOfMachine(store.GaugeSelfCPU.Reading(&s.Host.Host), s)
}

func collections(_ *pane.Frame, s *store.Snapshot) string {
	if !s.Host.Self.GCCount.OK() {
		return ""
	}
	return "collections: " + metric.Count(s.Host.Self.GCCount.V)
}

// gaugeSums holds statistics of the gauges over a window; update recomputes them when a sample arrives.
type gaugeSums struct {
	first     *store.HostPoint
	n         int
	itlRho    [store.NumGauges]metric.Correlation // correlation with the mean ITL of the same sample
	typical   [store.NumGauges]float64            // median; NaN without samples
	mostPairs int                                 // samples of the gauge that has the most pairs with ITL
	ranks     metric.Ranks
	scratch   []float64
}

func (g *gaugeSums) update(pts []store.HostPoint) {
	if len(pts) == 0 {
		*g = gaugeSums{ranks: g.ranks, scratch: g.scratch}
		return
	}
	if g.first == &pts[0] && g.n == len(pts) {
		return
	}
	g.first, g.n, g.mostPairs = &pts[0], len(pts), 0
	for k := range store.NumGauges {
		g.itlRho[k] = g.ranks.Spearman(len(pts), func(i int) (float64, float64) { return pts[i].V[k], pts[i].ITL })
		g.mostPairs = max(g.mostPairs, g.itlRho[k].N)
		g.typical[k] = g.median(pts, k)
	}
}

func (g *gaugeSums) median(pts []store.HostPoint, k store.Gauge) float64 {
	values := g.scratch[:0]
	for i := range pts {
		if v := pts[i].V[k]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	g.scratch = values
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// role returns the colour of a trend.
func (r *gaugeRow) role() theme.Role {
	switch r.gauge {
	case store.GaugeRead, store.GaugeReceived:
		return theme.SeriesRead
	case store.GaugeWrite, store.GaugeSent:
		return theme.SeriesWrite
	case store.GaugeCPUPressure, store.GaugeThrottled, store.GaugeRunWait, store.GaugeMemPressure, store.GaugeIOPressure, store.GaugeMajorFaults:
		return theme.SeriesP99
	}
	return theme.SeriesPrefill
}

// reading returns the value of the last sample, and the text shown if it is absent.
func (r *gaugeRow) reading(c *pane.Frame, s *store.Snapshot) (event.Reading, string) {
	if r.noTrend != nil {
		return r.noTrend(c, s)
	}
	v := r.gauge.Reading(&s.Host.Host)
	return v, v.Absence()
}

// detailWords returns the text after the number.
func (r *gaugeRow) detailWords(c *pane.Frame, s *store.Snapshot) string {
	if r.detail == nil {
		return ""
	}
	return r.detail(c, s)
}

// gpuWords writes the values of one accelerator into a row.
func gpuWords(l *grid.Line, g *event.GPU) {
	for _, v := range [...]struct {
		r event.Reading
		f func(float64) string
	}{{g.Util, metric.Percent}, {g.MemUsed, metric.Bytes}, {g.Power, watts}, {g.Clock, hertz}, {g.Temperature, celsius}} {
		if v.r.OK() {
			l.Fit(grid.Piece{Style: pane.Plain, Words: v.f(v.r.V) + "  "})
		}
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: sanitize.Line(g.Name)})
}
