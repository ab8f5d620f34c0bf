package host

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// cgroups are the limit and usage files of the control group that a container sees as its root: version 2, then 1.
var cgroups = []struct{ limit, used string }{
	{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
	{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"},
}

// limits lowers the machine's values to the limits of the control group.
func (l *linux) limits(h *event.Host) {
	h.CPULimit = l.cpuLimit()
	h.Limited = h.CPULimit.OK()
	for _, g := range cgroups {
		limit, ok := l.number(g.limit)
		used, found := l.number(g.used)
		if ok && found && (!h.MemTotal.OK() || limit < h.MemTotal.V) {
			h.MemTotal, h.MemUsed, h.Limited = event.MeasuredValue(limit), event.MeasuredValue(used), true
			return
		}
	}
}

// number reads a file that holds one number; false if it is missing or holds a word such as "max".
func (l *linux) number(name string) (float64, bool) {
	raw, err := l.read(name)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
	return v, err == nil && v >= 0
}

// cpuLimit returns the CPU limit of the control group in cores; absent without a limit.
func (l *linux) cpuLimit() event.Reading {
	if raw, err := l.read("sys/fs/cgroup/cpu.max"); err == nil {
		if f := strings.Fields(string(raw)); len(f) == 2 && f[0] != "max" {
			return quota(f[0], f[1])
		}
		return event.Absent(event.NotReported)
	}
	quotaUS, ok := l.number("sys/fs/cgroup/cpu/cpu.cfs_quota_us")
	period, found := l.number("sys/fs/cgroup/cpu/cpu.cfs_period_us")
	if ok && found && quotaUS > 0 && period > 0 {
		return event.MeasuredValue(quotaUS / period)
	}
	return event.Absent(event.NotReported)
}

func quota(quota, period string) event.Reading {
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || !(q > 0) || !(p > 0) {
		return event.Absent(event.NotReported)
	}
	return event.MeasuredValue(q / p)
}
