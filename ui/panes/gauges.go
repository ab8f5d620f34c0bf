package panes

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// gaugeRow is a row of the table of gauges.
type gaugeRow struct {
	group string // that begins with it
	name  string
	gauge store.Gauge
	write func(float64) string
	more  func(c *Ctx, s *store.Snapshot) string                         // after the number, nil: nothing
	alone func(c *Ctx, s *store.Snapshot) (now event.Reading, or string) // a number without a course, and what is said in its place
	gpu   int                                                            // from 1: one of several accelerators, in words
}

func perSecond(v float64) string      { return metric.Rate(v) + "/s" }
func bytesPerSecond(v float64) string { return metric.Bytes(v) + "/s" }
func cores(v float64) string          { return metric.Rate(v) + " cores" }
func watts(v float64) string          { return metric.Rate(v) + " W" }
func celsius(v float64) string        { return metric.Rate(v) + " °C" }

var gaugeRows = []gaugeRow{
	{group: "Processor", name: "CPU", gauge: store.GaugeCPU, write: metric.Percent, more: machineCores},
	{name: "clock", gauge: store.GaugeClock, write: hertz},
	{name: "CPU pressure", gauge: store.GaugeCPUPressure, write: metric.Percent},
	{name: "throttled", gauge: store.GaugeThrottled, write: metric.Percent, more: grantedCores},
	{group: "Engine", name: "engine CPU", gauge: store.GaugeEngineCPU, write: cores, more: engineThreads},
	{name: "run wait", gauge: store.GaugeRunWait, write: metric.Percent},
	{name: "switches", gauge: store.GaugeVoluntary, write: perSecond},
	{name: "preempted", gauge: store.GaugeInvoluntary, write: perSecond},
	{group: "Memory", name: "memory", gauge: store.GaugeMemory, write: metric.Bytes, more: memoryLimit},
	{name: "mem pressure", gauge: store.GaugeMemPressure, write: metric.Percent},
	{name: "engine RSS", gauge: store.GaugeRSS, write: metric.Bytes, more: peakRSS},
	{name: "engine PSS", write: metric.Bytes, alone: enginePSS, more: ageOfPSS},
	{name: "model cached", write: metric.Percent, alone: modelCached, more: modelFile},
	{name: "minor faults", gauge: store.GaugeMinorFaults, write: perSecond},
	{name: "major faults", gauge: store.GaugeMajorFaults, write: perSecond},
	{group: "Disk", name: "disk read", gauge: store.GaugeRead, write: bytesPerSecond, more: readOps},
	{name: "disk write", gauge: store.GaugeWrite, write: bytesPerSecond, more: writeOps},
	{name: "I/O pressure", gauge: store.GaugeIOPressure, write: metric.Percent},
	{group: "Network", name: "received", gauge: store.GaugeReceived, write: bytesPerSecond},
	{name: "sent", gauge: store.GaugeSent, write: bytesPerSecond},
	{group: "Energy", name: "CPU power", gauge: store.GaugePower, write: watts, more: perToken},
	{group: "llmtop", name: "llmtop CPU", gauge: store.GaugeSelfCPU, write: cores, more: selfShare},
	{name: "llmtop RSS", gauge: store.GaugeSelfRSS, write: metric.Bytes},
	{name: "GC pause", gauge: store.GaugeGCPause, write: nanoseconds, more: collections},
}

// gpuRows stand before the row of energy where there are accelerators.
var gpuRows = []gaugeRow{
	{group: "GPU", name: "GPU", gauge: store.GaugeGPU, write: metric.Percent, more: gpuName},
	{name: "GPU memory", gauge: store.GaugeGPUMemory, write: metric.Bytes, more: gpuMemory},
	{name: "GPU power", gauge: store.GaugeGPUPower, write: watts},
	{name: "GPU clock", gauge: store.GaugeGPUClock, write: hertz},
	{name: "GPU heat", gauge: store.GaugeGPUHeat, write: celsius},
}

var noGPURow = gaugeRow{group: "GPU", name: "GPU", alone: func(_ *Ctx, s *store.Snapshot) (event.Reading, string) {
	why := s.Host.NoGPU
	if why == "" {
		why = event.NotReported.String()
	}
	return event.Reading{}, sanitize.Line(why)
}}

// gaugeList are the rows for a machine, in order; accelerators follow each other.
func (c *Ctx) gaugeList(s *store.Snapshot) []gaugeRow {
	list := c.Memory.gaugeRows[:0]
	for _, r := range gaugeRows {
		if r.group == "Energy" {
			if len(s.Host.GPUs) == 0 {
				list = append(list, noGPURow)
			} else {
				list = append(list, gpuRows...)
			}
			for i := range s.Host.GPUs {
				if len(s.Host.GPUs) > 1 {
					list = append(list, gaugeRow{name: "GPU " + itoa(i), gpu: i + 1})
				}
			}
		}
		list = append(list, r)
	}
	c.Memory.gaugeRows = list
	return list
}

func machineCores(_ *Ctx, s *store.Snapshot) string {
	words := itoa(len(s.Host.Cores)) + " cores"
	if s.Host.Load1.OK() {
		words += ", load " + metric.Rate(s.Host.Load1.V)
	}
	return words
}

func grantedCores(_ *Ctx, s *store.Snapshot) string {
	if !s.Host.CPULimit.OK() {
		return "no limit"
	}
	return "limit " + cores(s.Host.CPULimit.V)
}

// engineThreads is also how much of the machine the engine takes.
func engineThreads(_ *Ctx, s *store.Snapshot) string {
	words := ofMachine(s.Host.Engine.CPU, s)
	if s.Host.Engine.Threads.OK() {
		words += "  " + metric.Count(s.Host.Engine.Threads.V) + " threads"
	}
	return strings.TrimSpace(words)
}

// ofMachine is a processor time in cores as a share of all cores.
func ofMachine(r event.Reading, s *store.Snapshot) string {
	n := len(s.Host.Cores)
	if n == 0 || !r.OK() {
		return ""
	}
	return metric.Percent(r.V/float64(n)) + " of all"
}

func memoryLimit(_ *Ctx, s *store.Snapshot) string {
	switch {
	case !s.Host.MemTotal.OK():
		return ""
	case s.Host.Limited:
		return "limit " + metric.Bytes(s.Host.MemTotal.V)
	}
	return "of " + metric.Bytes(s.Host.MemTotal.V)
}

func peakRSS(_ *Ctx, s *store.Snapshot) string {
	if !s.Host.Engine.Peak.OK() {
		return ""
	}
	return "peak " + metric.Bytes(s.Host.Engine.Peak.V)
}

// enginePSS is the last that was measured; it says how to have it measured where that can be done.
func enginePSS(c *Ctx, s *store.Snapshot) (event.Reading, string) {
	l := &s.Host.Looked
	switch {
	case l.PSSAt != 0:
		return l.PSS, l.PSS.Why()
	case c.Inspect:
		return event.Reading{}, "press i to measure"
	}
	return event.Reading{}, event.NotReported.String()
}

func ageOfPSS(_ *Ctx, s *store.Snapshot) string { return age(s, s.Host.Looked.PSSAt) }

// age is how long ago a moment was, "" if it never came.
func age(s *store.Snapshot, at event.Time) string {
	if at == 0 {
		return ""
	}
	return metric.Duration(int64(time.Duration(s.Now-at).Round(time.Second))) + " ago"
}

// modelCached is the share of the model's file that is in the page cache.
func modelCached(c *Ctx, s *store.Snapshot) (event.Reading, string) {
	switch l := &s.Host.Looked; {
	case s.Model.Path == "(built in)":
		return event.Reading{}, "built in: no file"
	case l.ModelAt == 0 && c.Inspect:
		return event.Reading{}, event.NotYet.String()
	case l.ModelCached.OK() && l.ModelBytes.OK() && l.ModelBytes.V > 0:
		return event.From(l.ModelCached.V / l.ModelBytes.V), ""
	default:
		return event.Reading{}, l.ModelCached.Why()
	}
}

func modelFile(_ *Ctx, s *store.Snapshot) string {
	l := &s.Host.Looked
	if !l.ModelBytes.OK() {
		return ""
	}
	return "of " + metric.Bytes(l.ModelBytes.V) + ", " + age(s, l.ModelAt)
}

func readOps(_ *Ctx, s *store.Snapshot) string  { return operations(s.Host.Engine.ReadOps) }
func writeOps(_ *Ctx, s *store.Snapshot) string { return operations(s.Host.Engine.WriteOps) }

func operations(r event.Reading) string {
	if !r.OK() {
		return ""
	}
	return metric.Rate(r.V) + " op/s"
}

func gpuName(_ *Ctx, s *store.Snapshot) string {
	if n := len(s.Host.GPUs); n > 1 {
		return itoa(n) + " GPUs, mean"
	}
	return sanitize.Line(s.Host.GPUs[0].Name)
}

func gpuMemory(_ *Ctx, s *store.Snapshot) string {
	total := 0.0
	for i := range s.Host.GPUs {
		total += s.Host.GPUs[i].MemTotal.V
	}
	if !(total > 0) {
		return ""
	}
	return "of " + metric.Bytes(total)
}

// perToken is what the processors used for a token of the last sample's interval.
func perToken(_ *Ctx, s *store.Snapshot) string {
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

// selfShare is how much of the machine llmtop takes, without the engine.
func selfShare(_ *Ctx, s *store.Snapshot) string {
	return ofMachine(store.GaugeSelfCPU.Of(&s.Host.Host), s)
}

func collections(_ *Ctx, s *store.Snapshot) string {
	if !s.Host.Self.GCCount.OK() {
		return ""
	}
	return "collections: " + metric.Count(s.Host.Self.GCCount.V)
}

// gaugeSums are what the samples of a window make together, computed anew when there is another sample.
type gaugeSums struct {
	first *store.HostPoint
	n     int
	with  [store.NumGauges]metric.Correlation // with the mean ITL of the same sample
	usual [store.NumGauges]float64            // median; NaN without any
	most  int                                 // pairs of the gauge that has the most
	ranks metric.Ranks
	sort  []float64
}

func (g *gaugeSums) update(pts []store.HostPoint) {
	if len(pts) == 0 {
		*g = gaugeSums{ranks: g.ranks, sort: g.sort}
		return
	}
	if g.first == &pts[0] && g.n == len(pts) {
		return
	}
	g.first, g.n, g.most = &pts[0], len(pts), 0
	for k := range store.NumGauges {
		g.with[k] = g.ranks.Spearman(len(pts), func(i int) (float64, float64) { return pts[i].V[k], pts[i].ITL })
		g.most = max(g.most, g.with[k].N)
		g.usual[k] = g.median(pts, k)
	}
}

func (g *gaugeSums) median(pts []store.HostPoint, k store.Gauge) float64 {
	values := g.sort[:0]
	for i := range pts {
		if v := pts[i].V[k]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	g.sort = values
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// role is the colour of the course of a group of gauges.
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

// reading is what the row shows of the last sample, and the words in its place.
func (r *gaugeRow) reading(c *Ctx, s *store.Snapshot) (event.Reading, string) {
	if r.alone != nil {
		return r.alone(c, s)
	}
	v := r.gauge.Of(&s.Host.Host)
	return v, v.Why()
}

// words are those after the number.
func (r *gaugeRow) words(c *Ctx, s *store.Snapshot) string {
	if r.more == nil {
		return ""
	}
	return r.more(c, s)
}

// gpuWords is one of several accelerators in a row.
func gpuWords(l *grid.Line, g *event.GPU) {
	for _, v := range [...]struct {
		r event.Reading
		f func(float64) string
	}{{g.Util, metric.Percent}, {g.MemUsed, metric.Bytes}, {g.Power, watts}, {g.Clock, hertz}, {g.Temperature, celsius}} {
		if v.r.OK() {
			l.Fit(grid.Piece{Style: text, Words: v.f(v.r.V) + "  "})
		}
	}
	l.Fit(grid.Piece{Style: dim, Words: sanitize.Line(g.Name)})
}
