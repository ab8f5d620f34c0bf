package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// RunUsage is the resource use of the machine and of two processes over all samples: means over time, peaks, and sums.
type RunUsage struct {
	Seconds     Number            `json:"sampled_s"`
	CPU         Number            `json:"cpu_share"` // of the machine
	Frequency   Number            `json:"frequency_hz"`
	MemoryUsed  Number            `json:"memory_used_bytes"`
	MemoryPeak  Number            `json:"memory_peak_bytes"`
	MemoryShare Number            `json:"memory_peak_share"` // of all memory
	Engine      ProcessRunUsage   `json:"engine"`
	Self        ProcessRunUsage   `json:"llmtop"`
	GPUs        []AcceleratorUse  `json:"gpus"`
	Absent      map[string]string `json:"absent,omitempty"`
}

// ProcessRunUsage is the resource use of one process.
type ProcessRunUsage struct {
	CPU         Number            `json:"cpu_cores"`
	Utilisation Number            `json:"cpu_utilisation"` // of the machine's cores
	RSS         Number            `json:"rss_bytes"`
	Peak        Number            `json:"peak_rss_bytes"`
	Read        Number            `json:"disk_read_bytes"`
	Write       Number            `json:"disk_write_bytes"`
	ReadOps     Number            `json:"disk_read_ops"`
	WriteOps    Number            `json:"disk_write_ops"`
	Absent      map[string]string `json:"absent,omitempty"`
}

// AcceleratorUse is the use of one GPU.
type AcceleratorUse struct {
	Name       string            `json:"name"`
	Util       Number            `json:"utilisation"`
	Power      Number            `json:"power_w"`
	MemoryPeak Number            `json:"memory_peak_bytes"`
	Absent     map[string]string `json:"absent,omitempty"`
}

// weightedMean accumulates a reading: its integral over the time in which it was available, and its peak.
type weightedMean struct {
	total, time, peak float64
	seen              bool
	absence           event.Reading // reason of the last absent reading
}

// add adds a reading for an interval of ns.
func (g *weightedMean) add(r event.Reading, interval int64) {
	if !r.OK() {
		g.absence = r
		return
	}
	g.total, g.time, g.seen = g.total+r.V*float64(interval), g.time+float64(interval), true
	g.peak = max(g.peak, r.V)
}

// mean is the mean over time.
func (g *weightedMean) mean() Number {
	if g.time == 0 {
		return Number(g.absence)
	}
	return Measured(g.total / g.time)
}

// peakValue is the highest reading.
func (g *weightedMean) peakValue() Number {
	if !g.seen {
		return Number(g.absence)
	}
	return Measured(g.peak)
}

// sum is the integral of a rate per second.
func (g *weightedMean) sum() Number {
	if g.time == 0 {
		return Number(g.absence)
	}
	return Measured(g.total / 1e9)
}

// hostUsage accumulates the samples of a machine.
type hostUsage struct {
	begun                             bool
	began                             event.Time // earliest event
	until                             event.Time // time of the last sample
	ns                                int64
	cores                             int
	cpu, frequency, memory, memoryAll weightedMean
	engine, self                      processUsage
	gpus                              []gpuUsage
}

type processUsage struct{ cpu, rss, peak, read, write, readOps, writeOps weightedMean }

type gpuUsage struct {
	name                string
	util, power, memory weightedMean
}

// begin moves the start of the session to the time of an event, if that is earlier.
func (u *hostUsage) begin(at event.Time) {
	if at = max(at, 0); !u.begun || at < u.began {
		u.begun, u.began = true, at
	}
}

// add adds a sample. Its interval counts as far as it is within the session and not counted yet: an engine that was
// already running sends its last sample again to those that connect.
func (u *hostUsage) add(at event.Time, h *event.Host) {
	if at < u.began {
		return
	}
	interval := max(int64(at-max(u.began, u.until, at-event.Time(h.Interval))), 0)
	u.until = max(u.until, at)
	u.ns += interval
	u.cores = max(u.cores, len(h.Cores))
	u.cpu.add(h.CPU, interval)
	u.frequency.add(h.Frequency, interval)
	u.memory.add(h.MemUsed, interval)
	u.memoryAll.add(h.MemTotal, interval)
	u.engine.add(&h.Engine, interval)
	u.self.add(&h.Self, interval)
	for i, g := range h.GPUs {
		if i == len(u.gpus) {
			u.gpus = append(u.gpus, gpuUsage{name: g.Name})
		}
		u.gpus[i].util.add(g.Util, interval)
		u.gpus[i].power.add(g.Power, interval)
		u.gpus[i].memory.add(g.MemUsed, interval)
	}
}

// add adds a sample of a process. interval is that of the sample.
func (u *processUsage) add(p *event.Process, interval int64) {
	if p.Interval > 0 {
		interval = p.Interval
	}
	for g, r := range map[*weightedMean]event.Reading{
		&u.cpu: p.CPU, &u.rss: p.RSS, &u.peak: p.Peak, &u.read: p.Read, &u.write: p.Write, &u.readOps: p.ReadOps, &u.writeOps: p.WriteOps,
	} {
		g.add(r, interval)
	}
}

func (u *hostUsage) runUsage() RunUsage {
	out := RunUsage{
		CPU: u.cpu.mean(), Frequency: u.frequency.mean(), MemoryUsed: u.memory.mean(), MemoryPeak: u.memory.peakValue(),
		Engine: u.engine.runUsage(u.cores), Self: u.self.runUsage(u.cores), GPUs: []AcceleratorUse{},
	}
	if u.ns > 0 {
		out.Seconds = Measured(float64(u.ns) / 1e9)
	}
	if all, ok := u.memoryAll.peakValue().Positive(); ok && out.MemoryPeak.OK() {
		out.MemoryShare = Measured(out.MemoryPeak.V / all)
	}
	for i := range u.gpus {
		g := &u.gpus[i]
		use := AcceleratorUse{Name: g.name, Util: g.util.mean(), Power: g.power.mean(), MemoryPeak: g.memory.peakValue()}
		use.Absent = absences(use)
		out.GPUs = append(out.GPUs, use)
	}
	out.Absent = absences(out)
	return out
}

func (u *processUsage) runUsage(cores int) ProcessRunUsage {
	out := ProcessRunUsage{
		CPU: u.cpu.mean(), RSS: u.rss.mean(), Peak: u.peak.peakValue(), Read: u.read.sum(), Write: u.write.sum(), ReadOps: u.readOps.sum(), WriteOps: u.writeOps.sum(),
	}
	if out.CPU.OK() && cores > 0 {
		out.Utilisation = Measured(out.CPU.V / float64(cores))
	}
	out.Absent = absences(out)
	return out
}

// reading is a number with its name and its format.
type reading struct {
	name string
	n    Number
	f    func(float64) string
}

// joinReadings lists readings, separated by commas: "4.00 kB, calls not reported". If all are absent for the same
// reason, it returns the reason.
func joinReadings(all ...reading) string {
	reason := all[0].n.absence()
	if !slices.ContainsFunc(all, func(r reading) bool { return r.n.OK() || r.n.absence() != reason }) {
		return reason
	}
	var parts []string
	for _, r := range all {
		if r.n.OK() {
			parts = append(parts, r.f(r.n.V))
		} else {
			parts = append(parts, r.name+" "+r.n.absence())
		}
	}
	return strings.Join(parts, ", ")
}

// withShare formats a number and, if both are available, its share of a total: "1.50 cores, 75 %".
func withShare(n Number, f func(float64) string, share Number) string {
	if !n.OK() || !share.OK() {
		return format(n, f)
	}
	return f(n.V) + ", " + metric.Percent(share.V)
}

// callCount formats a number of read or write calls.
func callCount(n float64) string {
	if n == 1 {
		return "1 call"
	}
	return metric.Count(n) + " calls"
}

// hostSection returns the resource use of the engine's process and of the machine over the run.
func hostSection(r *Report) section {
	s := section{title: "Machine, over the run", left: 1, header: []string{"", "engine process", "machine"}}
	h, u, p := &r.Host, &r.Host.RunUsage, &r.Host.RunUsage.Engine
	if m := r.Machine.describe(); m != event.NotReported.String() {
		s.words = append(s.words, m+".")
	}
	if !h.Sampled {
		s.words = append(s.words, "No samples of the machine.")
		return s
	}
	cores := func(v float64) string { return metric.Rate(v) + " cores" }
	transfers := func(bytes, ops Number) string {
		return joinReadings(
			reading{"bytes", bytes, metric.Bytes},
			reading{"calls", ops, callCount})
	}
	s.rows = [][]string{
		{"CPU", withShare(p.CPU, cores, p.Utilisation), format(u.CPU, metric.Percent)},
		{"frequency", "", format(u.Frequency, metric.Hertz)},
		{"memory", format(p.RSS, metric.Bytes), usedOfTotal(u.MemoryUsed, numberNamed(event.MachineFields[:], h.Readings[:], "memory_bytes"), metric.Bytes)},
		{"memory, peak", format(p.Peak, metric.Bytes), withShare(u.MemoryPeak, metric.Bytes, u.MemoryShare)},
		{"disk read", transfers(p.Read, p.ReadOps), ""},
		{"disk written", transfers(p.Write, p.WriteOps), ""},
	}
	for i, g := range u.GPUs {
		all := Number{}
		if i < len(h.GPUs) {
			all = numberNamed(event.GPUFields[:], h.GPUs[i].Readings[:], "memory_bytes")
		}
		s.rows = append(s.rows, []string{g.Name, "", fmt.Sprintf("%s, peak memory %s",
			joinReadings(reading{"utilisation", g.Util, metric.Percent}, reading{"power", g.Power, metric.Watts}), usedOfTotal(g.MemoryPeak, all, metric.Bytes))})
	}
	if h.NoGPU != nil {
		s.words = append(s.words, "GPU: "+*h.NoGPU+".")
	}
	return s
}
