package host

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// network reads what came and went over the machine's network.
func (l *linux) network(h *event.Host, since time.Duration) {
	dev, err := l.read("proc/net/dev")
	if err != nil {
		h.Received, h.Sent = why(err), why(err)
		return
	}
	if received, sent, ok := parseNetwork(dev); ok {
		h.Received = l.rate("received", received, since.Seconds())
		h.Sent = l.rate("sent", sent, since.Seconds())
	}
}

// pressure reads how long some task was held up: for a core, for memory, for storage (PSI), and by what the control group grants.
func (l *linux) pressure(h *event.Host, since time.Duration) {
	for _, p := range [...]struct {
		file string
		r    *event.Reading
	}{{"proc/pressure/cpu", &h.CPUPressure}, {"proc/pressure/memory", &h.MemPressure}, {"proc/pressure/io", &h.IOPressure}} {
		raw, err := l.read(p.file)
		if err != nil {
			*p.r = why(err)
			continue
		}
		if total, ok := parsePressure(raw); ok {
			*p.r = l.rate(p.file, total, since.Seconds()*1e6)
		}
	}
	h.Throttled = l.throttled(since)
}

// throttled is the share of the time in which the control group was held back, from version 2 or 1 of control groups.
func (l *linux) throttled(since time.Duration) event.Reading {
	for _, g := range [...]struct {
		file, key string
		perSecond float64
	}{{"sys/fs/cgroup/cpu.stat", "throttled_usec", 1e6}, {"sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e9}} {
		stat, err := l.read(g.file)
		if err != nil {
			continue
		}
		if v, ok := keyed(stat, g.key); ok {
			return l.rate(g.file, v, since.Seconds()*g.perSecond)
		}
	}
	return event.Absent(event.NotReported)
}

// rate is the increase of a counter of the machine per unit of time, which units have passed; NotYet when it is read first.
func (l *linux) rate(name string, now uint64, units float64) event.Reading {
	before, known := l.sums[name]
	l.sums[name] = now
	if !known {
		units = 0
	}
	return per(now, before, units)
}
