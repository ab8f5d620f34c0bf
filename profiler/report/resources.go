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
	Machine Numbers
	Engine  Numbers
	Self    Numbers
	GPUs    []Numbers
}

// runUsage returns the use of a machine; nil: no samples.
func runUsage(u *store.HostUsage) RunUsage {
	if u == nil {
		u = new(store.HostUsage)
	}
	seconds, peak, share := event.Reading{}, u.Memory.Highest(), event.Reading{}
	if u.Nanos > 0 {
		seconds = Measured(float64(u.Nanos) / 1e9)
	}
	if all, ok := u.MemoryTotal.Highest().Positive(); ok && peak.OK() {
		share = Measured(peak.V / all)
	}
	out := RunUsage{Engine: processUsage(&u.Engine, u.Cores), Self: processUsage(&u.Self, u.Cores), GPUs: []Numbers{}}
	out.Machine.list = []named{
		{"sampled_s", seconds},
		{"cpu_share", u.CPU.Mean()},
		{"frequency_hz", u.Frequency.Mean()},
		{"memory_used_bytes", u.Memory.Mean()},
		{"memory_peak_bytes", peak},
		{"memory_peak_share", share}, // of all memory
	}
	for i := range u.GPUs {
		g := &u.GPUs[i]
		out.GPUs = append(out.GPUs, Numbers{Name: g.Name, list: []named{
			{"utilisation", g.Util.Mean()}, {"power_w", g.Power.Mean()}, {"memory_peak_bytes", g.Memory.Highest()},
		}})
	}
	return out
}

func processUsage(u *store.ProcessUsage, cores int) Numbers {
	used, share := u.CPU.Mean(), event.Reading{}
	if used.OK() && cores > 0 {
		share = Measured(used.V / float64(cores))
	}
	return Numbers{list: []named{
		{"cpu_cores", used},
		{"cpu_utilisation", share}, // of the machine's cores
		{"rss_bytes", u.RSS.Mean()},
		{"peak_rss_bytes", u.Peak.Highest()},
		{"disk_read_bytes", u.Read.Sum()},
		{"disk_read_ops", u.ReadOps.Sum()},
		{"disk_write_bytes", u.Write.Sum()},
		{"disk_write_ops", u.WriteOps.Sum()},
	}}
}

// joinReadings lists readings, separated by commas: "4.00 kB, calls not reported". If all are absent for the same
// reason, it returns the reason.
func joinReadings(all []named, f ...func(float64) string) string {
	reason := all[0].N.Absence()
	if !slices.ContainsFunc(all, func(r named) bool { return r.N.OK() || r.N.Absence() != reason }) {
		return reason
	}
	var parts []string
	for i, r := range all {
		if r.N.OK() {
			parts = append(parts, f[i](r.N.V))
		} else {
			parts = append(parts, r.Name+" "+r.N.Absence())
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
	transfers := func(bytes, ops event.Reading) string {
		return joinReadings([]named{{"bytes", bytes}, {"calls", ops}}, metric.Bytes, callCount)
	}
	m := &u.Machine
	s.rows = [][]string{
		{"CPU", withShare(p.Of("cpu_cores"), metric.Cores, p.Of("cpu_utilisation")), format(m.Of("cpu_share"), metric.Percent)},
		{"frequency", "", format(m.Of("frequency_hz"), metric.Hertz)},
		{"memory", format(p.Of("rss_bytes"), metric.Bytes), usedOfTotal(m.Of("memory_used_bytes"), h.Machine.Of("memory_bytes"), metric.Bytes)},
		{"memory, peak", format(p.Of("peak_rss_bytes"), metric.Bytes), withShare(m.Of("memory_peak_bytes"), metric.Bytes, m.Of("memory_peak_share"))},
		{"disk read", transfers(p.Of("disk_read_bytes"), p.Of("disk_read_ops")), ""},
		{"disk written", transfers(p.Of("disk_write_bytes"), p.Of("disk_write_ops")), ""},
	}
	for i := range u.GPUs {
		g, all := &u.GPUs[i], event.Reading{}
		if i < len(h.GPUs) {
			all = h.GPUs[i].Of("memory_bytes")
		}
		s.rows = append(s.rows, []string{g.Name, "", fmt.Sprintf("%s, peak memory %s",
			joinReadings([]named{{"utilisation", g.Of("utilisation")}, {"power", g.Of("power_w")}}, metric.Percent, metric.Watts), usedOfTotal(g.Of("memory_peak_bytes"), all, metric.Bytes))})
	}
	if h.NoGPU != nil {
		s.words = append(s.words, "GPU: "+*h.NoGPU+".")
	}
	return s
}
