package system

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// gaugeRow is a row of the gauge table.
type gaugeRow struct {
	name    string
	gauge   event.Gauge
	write   func(float64) string
	detail  func(s *store.Snapshot, f *pane.Frame) string                         // text after the number; nil: none
	noTrend func(s *store.Snapshot, f *pane.Frame) (now event.Reading, or string) // reads a value that has no samples over time; or is shown if it is absent
	first   bool                                                                  // starts a group
}

// The formats of the gauges.
var (
	cores   = metric.Cores
	watts   = metric.Watts
	celsius = metric.Celsius
	hertz   = metric.Hertz
)

// gaugeRows has a row per gauge: its name and unit are those of the catalogue, the rest is of this table only.
var gaugeRows = func() (rows [event.NumGauges]gaugeRow) {
	for _, g := range [...]event.Gauge{
		event.GaugeCPU, event.GaugeEngineCPU, event.GaugeMemory, event.GaugeRead, event.GaugeReceived, event.GaugeGPU, event.GaugePower, event.GaugeSelfCPU,
	} {
		rows[g].first = true
	}
	for g, words := range map[event.Gauge]func(*store.Snapshot, *pane.Frame) string{
		event.GaugeCPU: machineCores, event.GaugeThrottled: grantedCores, event.GaugeEngineCPU: engineThreads, event.GaugeMemory: memoryLimit,
		event.GaugePSS: ageOfPSS, event.GaugeModelCached: modelFile, event.GaugePower: perToken, event.GaugeGPU: gpuName,
		event.GaugeGPUEngine: gpuDetail("others %s", "gpu_others", metric.Percent), event.GaugeGPUMemory: gpuDetail("of %s", "gpu_memory_limit", metric.Bytes),
		event.GaugeGPUDRAM: gpuDRAM, event.GaugeGPUPower: gpuDetail("of %s", "gpu_power_limit", watts), event.GaugeGPUClock: gpuClock,
		event.GaugeGPUTemperature: gpuDetail("memory %s", "gpu_memory_temperature", celsius), event.GaugeSelfCPU: selfShare,
		event.GaugeRSS:     detail("peak %s", func(h *event.Host) event.Reading { return h.Engine.Peak }, metric.Bytes),
		event.GaugeGCPause: detail("collections: %s", func(h *event.Host) event.Reading { return h.Self.GCCount }, metric.Count),
		// Calls are most often not for a disk: for pipes and the page cache.
		event.GaugeRead:  detail("%s read calls/s", func(h *event.Host) event.Reading { return h.Engine.ReadOps }, metric.Rate),
		event.GaugeWrite: detail("%s write calls/s", func(h *event.Host) event.Reading { return h.Engine.WriteOps }, metric.Rate),
	} {
		rows[g].detail = words
	}
	for g := range event.NumGauges {
		info := g.Info()
		rows[g].name, rows[g].gauge, rows[g].write = info.Title, g, metric.Format(info.Unit)
	}
	rows[event.GaugePSS].noTrend = enginePSS
	rows[event.GaugeModelCached].noTrend, rows[event.GaugeModelCached].write = modelCached, metric.Percent
	return rows
}()

// writeShort writes a value into a narrow column beside the current value, which has the unit in full.
func (r *gaugeRow) writeShort(v float64) string {
	return strings.TrimSuffix(r.write(v), metric.OfACore)
}

var noGPURow = gaugeRow{name: "GPU", first: true, noTrend: func(s *store.Snapshot, _ *pane.Frame) (event.Reading, string) {
	return event.Reading{}, sanitize.Line(cmp.Or(s.Host.NoGPU, event.NotReported.String()))
}}

// gaugeList appends the rows for a machine in order to a list. What is not reported has no row: the last row names it,
// except what accelerators and an unknown process lack.
func gaugeList(list []gaugeRow, s *store.Snapshot) []gaugeRow {
	unknown, first, absent := unknownProcess(s), false, ""
	for g := range event.NumGauges {
		first = first || gaugeRows[g].first
		gpu, reading := g >= event.GaugeGPU && g <= event.GaugePCIeOut, g.Reading(s.Host.Host)
		switch {
		case g >= event.GaugeLaunches && g <= event.GaugeCounted && reading.Origin == event.NotReported: // no probes of CUDA
		case unknown && !gpu && reading.Origin == event.NotReported:
		case gpu && g != event.GaugeGPU && reading.Origin == event.NotReported && len(s.Host.GPUs) > 0:
		case !gpu && reading.Origin == event.NotReported && gaugeRows[g].noTrend == nil:
			absent += ", " + gaugeRows[g].name
		case !gpu || len(s.Host.GPUs) > 0:
			row := gaugeRows[g]
			row.first, first = first, false
			list = append(list, row)
		case g == event.GaugeGPU:
			list = append(list, noGPURow)
		}
	}
	if absent != "" {
		list = append(list, gaugeRow{name: event.NotReported.String(), first: true, noTrend: func(*store.Snapshot, *pane.Frame) (event.Reading, string) {
			return event.Reading{}, absent[2:]
		}})
	}
	return list
}

// detail returns a detail that names a reading; "" if it is absent.
func detail(words string, of func(*event.Host) event.Reading, f func(float64) string) func(*store.Snapshot, *pane.Frame) string {
	return func(s *store.Snapshot, _ *pane.Frame) string {
		if r := of(s.Host.Host); r.OK() {
			return fmt.Sprintf(words, f(r.V))
		}
		return ""
	}
}

func machineCores(s *store.Snapshot, _ *pane.Frame) string {
	words := strconv.Itoa(len(s.Host.Cores)) + " cores"
	if s.Host.Load1.OK() {
		words += ", load " + metric.Rate(s.Host.Load1.V)
	}
	return words
}

func grantedCores(s *store.Snapshot, _ *pane.Frame) string {
	if !s.Host.CPULimit.OK() {
		return "no limit"
	}
	return "limit " + cores(s.Host.CPULimit.V)
}

// engineThreads returns the engine's share of the machine and its number of threads.
func engineThreads(s *store.Snapshot, _ *pane.Frame) string {
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

func memoryLimit(s *store.Snapshot, _ *pane.Frame) string {
	switch {
	case !s.Host.MemTotal.OK():
		return ""
	case s.Host.Limited:
		return "limit " + metric.Bytes(s.Host.MemTotal.V)
	}
	return "of " + metric.Bytes(s.Host.MemTotal.V)
}

// enginePSS returns the last measured PSS of the engine, or how to measure it where that is possible.
func enginePSS(s *store.Snapshot, f *pane.Frame) (event.Reading, string) {
	switch pss := s.Host.Engine.PSS; {
	case s.Host.PSSAt != 0:
		return pss, pss.Absence()
	case f.Inspect:
		return event.Reading{}, "press i to measure"
	}
	return event.Reading{}, event.NotReported.String()
}

func ageOfPSS(s *store.Snapshot, _ *pane.Frame) string { return age(s, s.Host.PSSAt) }

// age returns the time since a moment, "" if the moment never came.
func age(s *store.Snapshot, at event.Time) string {
	if at == 0 {
		return ""
	}
	return metric.Duration(int64(time.Duration(s.Now-at).Round(time.Second))) + " ago"
}

// modelCached returns the share of the model file that is in the page cache.
func modelCached(s *store.Snapshot, f *pane.Frame) (event.Reading, string) {
	switch h := &s.Host; {
	case s.Model.Path == "(built in)":
		return event.Reading{}, "built in: no file"
	case h.ModelAt == 0 && f.Inspect:
		return event.Reading{}, event.NotYet.String()
	case h.ModelCached.OK() && h.ModelBytes.OK() && h.ModelBytes.V > 0:
		return event.DerivedValue(h.ModelCached.V / h.ModelBytes.V), ""
	default:
		return event.Reading{}, h.ModelCached.Absence()
	}
}

func modelFile(s *store.Snapshot, _ *pane.Frame) string {
	if !s.Host.ModelBytes.OK() {
		return ""
	}
	return "of " + metric.Bytes(s.Host.ModelBytes.V) + ", " + age(s, s.Host.ModelAt)
}

// perToken returns the CPU energy per token over the last sample interval.
func perToken(s *store.Snapshot, _ *pane.Frame) string {
	pts := s.Host.Series
	if len(pts) == 0 {
		return ""
	}
	p := &pts[len(pts)-1]
	if watts := p.V[event.GaugePower]; !math.IsNaN(watts) && p.Tokens > 0 {
		return metric.Rate(watts*p.Interval.Seconds()/float64(p.Tokens)) + " J/token"
	}
	return ""
}

// selfShare returns llmtop's own share of the machine, without the engine.
func selfShare(s *store.Snapshot, _ *pane.Frame) string {
	return shareOfMachine(event.GaugeSelfCPU.Reading(s.Host.Host), s)
}

// gaugeSums holds statistics of the gauges over a window; update recomputes them when a sample arrives.
type gaugeSums struct {
	first     *store.HostPoint
	n         int
	itlRho    [event.NumGauges]metric.Correlation // correlation with the mean ITL of the same sample
	typical   [event.NumGauges]float64            // median; NaN without samples
	low, high [event.NumGauges]float64            // a quarter of the samples is below, above; NaN if there are too few
	mostPairs int                                 // samples of the gauge that has the most pairs with ITL
	ranks     metric.Ranks
	scratch   []float64
}

func (g *gaugeSums) update(pts []store.HostPoint) {
	var first *store.HostPoint
	if len(pts) > 0 {
		if first = &pts[0]; g.first == first && g.n == len(pts) {
			return
		}
	}
	g.first, g.n, g.mostPairs = first, len(pts), 0
	for k := range event.NumGauges {
		g.itlRho[k] = g.ranks.Spearman(len(pts), func(i int) (float64, float64) { return pts[i].V[k], pts[i].ITL })
		g.mostPairs = max(g.mostPairs, g.itlRho[k].N)
		g.quantiles(pts, k)
	}
}

// Atypical values need that many samples, and of shares that much difference: 0.2 % is no news where 0.0 % is typical.
const (
	minAtypical      = 20
	minAtypicalShare = 0.01
)

// atypical reports whether a value is more than twice or less than half the typical one, and outside of the middle half
// of the samples.
func (g *gaugeSums) atypical(k event.Gauge, v float64) bool {
	if k.Info().Unit == "1" && math.Abs(v-g.typical[k]) < minAtypicalShare {
		return false
	}
	return v > 2*g.typical[k] && v > g.high[k] || v < g.typical[k]/2 && v < g.low[k]
}

func (g *gaugeSums) quantiles(pts []store.HostPoint, k event.Gauge) {
	values := g.scratch[:0]
	for i := range pts {
		if v := pts[i].V[k]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	g.scratch = values
	g.typical[k], g.low[k], g.high[k] = math.NaN(), math.NaN(), math.NaN()
	n := len(values)
	if n == 0 {
		return
	}
	slices.Sort(values)
	g.typical[k] = values[n/2]
	if n >= minAtypical {
		g.low[k], g.high[k] = values[n/4], values[n-1-n/4]
	}
}

// role returns the colour of a trend.
func (r *gaugeRow) role() theme.Role {
	switch r.gauge {
	case event.GaugeRead, event.GaugeReceived:
		return theme.SeriesRead
	case event.GaugeWrite, event.GaugeSent:
		return theme.SeriesWrite
	case event.GaugeCPUPressure, event.GaugeThrottled, event.GaugeRunWait, event.GaugeMemPressure, event.GaugeIOPressure, event.GaugeMajorFaults:
		return theme.SeriesP99
	}
	return theme.SeriesPrefill
}

// reading returns the value of the last sample, and the text shown if it is absent.
func (r *gaugeRow) reading(s *store.Snapshot, f *pane.Frame) (event.Reading, string) {
	if r.noTrend != nil {
		return r.noTrend(s, f)
	}
	if engine := s.Host.Engine.PID; r.gauge == event.GaugeSelfRSS && engine != 0 && engine == s.Host.Self.PID {
		return event.Reading{}, "in engine RSS" // one process: its memory is not counted twice
	}
	v := r.gauge.Reading(s.Host.Host)
	return v, v.Absence()
}

// detailWords returns the text after the number.
func (r *gaugeRow) detailWords(s *store.Snapshot, f *pane.Frame) string {
	if r.detail == nil {
		return ""
	}
	return r.detail(s, f)
}
