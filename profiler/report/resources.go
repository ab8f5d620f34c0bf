package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
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

// runUsage returns the use of a machine; nil: no samples.
func runUsage(u *store.HostUsage) RunUsage {
	if u == nil {
		u = new(store.HostUsage)
	}
	out := RunUsage{
		CPU: Number(u.CPU.Mean()), Frequency: Number(u.Frequency.Mean()), MemoryUsed: Number(u.Memory.Mean()), MemoryPeak: Number(u.Memory.Highest()),
		Engine: processRunUsage(&u.Engine, u.Cores), Self: processRunUsage(&u.Self, u.Cores), GPUs: []AcceleratorUse{},
	}
	if u.Nanos > 0 {
		out.Seconds = Measured(float64(u.Nanos) / 1e9)
	}
	if all := Number(u.MemoryTotal.Highest()); out.MemoryPeak.OK() {
		if v, ok := all.Positive(); ok {
			out.MemoryShare = Measured(out.MemoryPeak.V / v)
		}
	}
	for i := range u.GPUs {
		g := &u.GPUs[i]
		use := AcceleratorUse{Name: g.Name, Util: Number(g.Util.Mean()), Power: Number(g.Power.Mean()), MemoryPeak: Number(g.Memory.Highest())}
		use.Absent = absences(use)
		out.GPUs = append(out.GPUs, use)
	}
	out.Absent = absences(out)
	return out
}

func processRunUsage(u *store.ProcessUsage, cores int) ProcessRunUsage {
	out := ProcessRunUsage{
		CPU: Number(u.CPU.Mean()), RSS: Number(u.RSS.Mean()), Peak: Number(u.Peak.Highest()),
		Read: Number(u.Read.Sum()), Write: Number(u.Write.Sum()), ReadOps: Number(u.ReadOps.Sum()), WriteOps: Number(u.WriteOps.Sum()),
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
