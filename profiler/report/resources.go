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
	Seconds     event.Reading     `json:"sampled_s"`
	CPU         event.Reading     `json:"cpu_share"` // of the machine
	Frequency   event.Reading     `json:"frequency_hz"`
	MemoryUsed  event.Reading     `json:"memory_used_bytes"`
	MemoryPeak  event.Reading     `json:"memory_peak_bytes"`
	MemoryShare event.Reading     `json:"memory_peak_share"` // of all memory
	Engine      ProcessRunUsage   `json:"engine"`
	Self        ProcessRunUsage   `json:"llmtop"`
	GPUs        []AcceleratorUse  `json:"gpus"`
	Absent      map[string]string `json:"absent,omitempty"`
}

// ProcessRunUsage is the resource use of one process.
type ProcessRunUsage struct {
	CPU         event.Reading     `json:"cpu_cores"`
	Utilisation event.Reading     `json:"cpu_utilisation"` // of the machine's cores
	RSS         event.Reading     `json:"rss_bytes"`
	Peak        event.Reading     `json:"peak_rss_bytes"`
	Read        event.Reading     `json:"disk_read_bytes"`
	Write       event.Reading     `json:"disk_write_bytes"`
	ReadOps     event.Reading     `json:"disk_read_ops"`
	WriteOps    event.Reading     `json:"disk_write_ops"`
	Absent      map[string]string `json:"absent,omitempty"`
}

// AcceleratorUse is the use of one GPU.
type AcceleratorUse struct {
	Name       string            `json:"name"`
	Util       event.Reading     `json:"utilisation"`
	Power      event.Reading     `json:"power_w"`
	MemoryPeak event.Reading     `json:"memory_peak_bytes"`
	Absent     map[string]string `json:"absent,omitempty"`
}

// runUsage returns the use of a machine; nil: no samples.
func runUsage(u *store.HostUsage) RunUsage {
	if u == nil {
		u = new(store.HostUsage)
	}
	out := RunUsage{
		CPU: u.CPU.Mean(), Frequency: u.Frequency.Mean(), MemoryUsed: u.Memory.Mean(), MemoryPeak: u.Memory.Highest(),
		Engine: processRunUsage(&u.Engine, u.Cores), Self: processRunUsage(&u.Self, u.Cores), GPUs: []AcceleratorUse{},
	}
	if u.Nanos > 0 {
		out.Seconds = Measured(float64(u.Nanos) / 1e9)
	}
	if all := u.MemoryTotal.Highest(); out.MemoryPeak.OK() {
		if v, ok := all.Positive(); ok {
			out.MemoryShare = Measured(out.MemoryPeak.V / v)
		}
	}
	for i := range u.GPUs {
		g := &u.GPUs[i]
		use := AcceleratorUse{Name: g.Name, Util: g.Util.Mean(), Power: g.Power.Mean(), MemoryPeak: g.Memory.Highest()}
		use.Absent = absences(use)
		out.GPUs = append(out.GPUs, use)
	}
	out.Absent = absences(out)
	return out
}

func processRunUsage(u *store.ProcessUsage, cores int) ProcessRunUsage {
	out := ProcessRunUsage{
		CPU: u.CPU.Mean(), RSS: u.RSS.Mean(), Peak: u.Peak.Highest(),
		Read: u.Read.Sum(), Write: u.Write.Sum(), ReadOps: u.ReadOps.Sum(), WriteOps: u.WriteOps.Sum(),
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
	n    event.Reading
	f    func(float64) string
}

// joinReadings lists readings, separated by commas: "4.00 kB, calls not reported". If all are absent for the same
// reason, it returns the reason.
func joinReadings(all ...reading) string {
	reason := all[0].n.Absence()
	if !slices.ContainsFunc(all, func(r reading) bool { return r.n.OK() || r.n.Absence() != reason }) {
		return reason
	}
	var parts []string
	for _, r := range all {
		if r.n.OK() {
			parts = append(parts, r.f(r.n.V))
		} else {
			parts = append(parts, r.name+" "+r.n.Absence())
		}
	}
	return strings.Join(parts, ", ")
}

// withShare formats a number and, if both are available, its share of a total: "1.50 cores, 75 %".
func withShare(n event.Reading, f func(float64) string, share event.Reading) string {
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
	transfers := func(bytes, ops event.Reading) string {
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
		all := event.Reading{}
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
