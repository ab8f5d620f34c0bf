package host

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/memory"
)

// limits lowers the machine's values to the limits of the control group.
func (l *linux) limits(h *event.Host) {
	h.CPULimit = l.cpuLimit()
	h.Limited = h.CPULimit.OK()
	if g, ok := memory.ReadCgroup(l.root); ok && (!h.MemTotal.OK() || float64(g.Limit) < h.MemTotal.V) {
		h.MemTotal, h.MemUsed, h.Limited = measured(float64(g.Limit)), measured(float64(g.Used)), true
	}
}

// cpuLimit returns the CPU limit of the control group in cores; absent without a limit.
func (l *linux) cpuLimit() event.Reading {
	raw, err := l.read("sys/fs/cgroup/cpu.max") // version 2: "QUOTA PERIOD"
	if err != nil {
		quota, err := l.read("sys/fs/cgroup/cpu/cpu.cfs_quota_us")
		if err != nil {
			return event.Absent(event.NotReported)
		}
		raw = bytes.Clone(quota) // valid until the next read
		period, err := l.read("sys/fs/cgroup/cpu/cpu.cfs_period_us")
		if err != nil {
			return event.Absent(event.NotReported)
		}
		raw = append(raw, period...)
	}
	f := strings.Fields(string(raw))
	if len(f) != 2 {
		return event.Absent(event.NotReported)
	}
	quota, err := strconv.ParseFloat(f[0], 64) // not a number without a limit, or -1
	period, err2 := strconv.ParseFloat(f[1], 64)
	if err != nil || err2 != nil || !(quota > 0) || !(period > 0) {
		return event.Absent(event.NotReported)
	}
	return measured(quota / period)
}
