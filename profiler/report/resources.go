package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// OverRun is what the machine and two processes used while they were sampled: means over time, peaks, and sums.
type OverRun struct {
	Seconds     Number            `json:"sampled_s"`
	CPU         Number            `json:"cpu_share"` // of the machine
	Frequency   Number            `json:"frequency_hz"`
	MemoryUsed  Number            `json:"memory_used_bytes"`
	MemoryPeak  Number            `json:"memory_peak_bytes"`
	MemoryShare Number            `json:"memory_peak_share"` // of all memory
	Engine      ProcessOverRun    `json:"engine"`
	Self        ProcessOverRun    `json:"llmtop"`
	GPUs        []AcceleratorUse  `json:"gpus"`
	Absent      map[string]string `json:"absent,omitempty"`
}

// ProcessOverRun is what one process used.
type ProcessOverRun struct {
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

// AcceleratorUse is what one GPU was used for.
type AcceleratorUse struct {
	Name       string `json:"name"`
	Util       Number `json:"utilisation"`
	Power      Number `json:"power_w"`
	MemoryPeak Number `json:"memory_peak_bytes"`
}

// gauge follows a reading: its integral over the time in which it was known, and its peak.
type gauge struct {
	total, time, peak float64
	seen              bool
	missing           event.Reading // the last that was none
}

// add takes a reading of the interval of ns that has ended with it.
func (g *gauge) add(r event.Reading, interval int64) {
	if !r.OK() {
		g.missing = r
		return
	}
	g.total, g.time, g.seen = g.total+r.V*float64(interval), g.time+float64(interval), true
	g.peak = max(g.peak, r.V)
}

func (g *gauge) mean() Number {
	if g.time == 0 {
		return Number(g.missing)
	}
	return Measured(g.total / g.time)
}

func (g *gauge) most() Number {
	if !g.seen {
		return Number(g.missing)
	}
	return Measured(g.peak)
}

// sum is the integral of a rate per second.
func (g *gauge) sum() Number {
	if g.time == 0 {
		return Number(g.missing)
	}
	return Measured(g.total / 1e9)
}

// usage sums up the samples of a machine.
type usage struct {
	ns                                int64
	cores                             int
	cpu, frequency, memory, memoryAll gauge
	engine, self                      processUsage
	gpus                              []gpuUsage
}

type processUsage struct{ cpu, rss, peak, read, write, readOps, writeOps gauge }

type gpuUsage struct {
	name                string
	util, power, memory gauge
}

func (u *usage) add(h *event.Host) {
	u.ns += h.Interval
	u.cores = max(u.cores, len(h.Cores))
	u.cpu.add(h.CPU, h.Interval)
	u.frequency.add(h.Frequency, h.Interval)
	u.memory.add(h.MemUsed, h.Interval)
	u.memoryAll.add(h.MemTotal, h.Interval)
	u.engine.add(&h.Engine, h.Interval)
	u.self.add(&h.Self, h.Interval)
	for i, g := range h.GPUs {
		if i == len(u.gpus) {
			u.gpus = append(u.gpus, gpuUsage{name: g.Name})
		}
		u.gpus[i].util.add(g.Util, h.Interval)
		u.gpus[i].power.add(g.Power, h.Interval)
		u.gpus[i].memory.add(g.MemUsed, h.Interval)
	}
}

func (u *processUsage) add(p *event.Process, interval int64) {
	for g, r := range map[*gauge]event.Reading{
		&u.cpu: p.CPU, &u.rss: p.RSS, &u.peak: p.Peak, &u.read: p.Read, &u.write: p.Write, &u.readOps: p.ReadOps, &u.writeOps: p.WriteOps,
	} {
		g.add(r, interval)
	}
}

func (u *usage) overRun() OverRun {
	out := OverRun{
		CPU: u.cpu.mean(), Frequency: u.frequency.mean(), MemoryUsed: u.memory.mean(), MemoryPeak: u.memory.most(),
		Engine: u.engine.overRun(u.cores), Self: u.self.overRun(u.cores), GPUs: []AcceleratorUse{},
	}
	if u.ns > 0 {
		out.Seconds = Measured(float64(u.ns) / 1e9)
	}
	if all, ok := u.memoryAll.most().Positive(); ok && out.MemoryPeak.OK() {
		out.MemoryShare = Measured(out.MemoryPeak.V / all)
	}
	for i := range u.gpus {
		g := &u.gpus[i]
		out.GPUs = append(out.GPUs, AcceleratorUse{g.name, g.util.mean(), g.power.mean(), g.memory.most()})
	}
	out.Absent = absences(out)
	return out
}

func (u *processUsage) overRun(cores int) ProcessOverRun {
	out := ProcessOverRun{
		CPU: u.cpu.mean(), RSS: u.rss.mean(), Peak: u.peak.most(), Read: u.read.sum(), Write: u.write.sum(), ReadOps: u.readOps.sum(), WriteOps: u.writeOps.sum(),
	}
	if out.CPU.OK() && cores > 0 {
		out.Utilisation = Measured(out.CPU.V / float64(cores))
	}
	out.Absent = absences(out)
	return out
}

// hostSection is what the engine's process and the machine used over the run.
func (r *Report) hostSection() section {
	s := section{title: "Machine, over the run", left: 1, header: []string{"", "engine's process", "machine"}}
	h, u, p := &r.Host, &r.Host.OverRun, &r.Host.OverRun.Engine
	s.words = append(s.words, r.Machine.describe()+".")
	if !h.Known {
		s.words = append(s.words, "No sample of the machine came.")
		return s
	}
	operations := func(bytes, ops Number) string {
		return format(bytes, metric.Bytes) + ", " + format(ops, metric.Count) + " operations"
	}
	s.rows = [][]string{
		{"CPU", format(p.CPU, metric.Rate) + " cores, " + format(p.Utilisation, metric.Percent), format(u.CPU, metric.Percent)},
		{"frequency", "", format(u.Frequency, hertz)},
		{"memory", format(p.RSS, metric.Bytes), format(u.MemoryUsed, metric.Bytes) + " of " + format(h.Memory, metric.Bytes)},
		{"memory, peak", format(p.Peak, metric.Bytes), format(u.MemoryPeak, metric.Bytes) + ", " + format(u.MemoryShare, metric.Percent)},
		{"disk read", operations(p.Read, p.ReadOps), ""},
		{"disk written", operations(p.Write, p.WriteOps), ""},
	}
	for i, g := range u.GPUs {
		all := Number{}
		if i < len(h.GPUs) {
			all = h.GPUs[i].Memory
		}
		s.rows = append(s.rows, []string{g.Name, "", fmt.Sprintf("%s, %s, peak %s of %s", format(g.Util, metric.Percent), format(g.Power, watts),
			format(g.MemoryPeak, metric.Bytes), format(all, metric.Bytes))})
	}
	if h.NoGPU != nil {
		s.words = append(s.words, *h.NoGPU+".")
	}
	return s
}

func hertz(v float64) string { return metric.Count(v/1e6) + " MHz" }

func watts(v float64) string { return metric.Rate(v) + " W" }
