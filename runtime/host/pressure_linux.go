package host

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// network reads the received and sent bytes of the machine's network interfaces.
func (l *linux) network(h *event.Host, since time.Duration) {
	dev, err := l.read("proc/net/dev")
	if err != nil {
		h.Received, h.Sent = readFailure(err), readFailure(err)
		return
	}
	if received, sent, ok := parseNetwork(dev); ok {
		h.Received = l.rate("received", received, since.Seconds())
		h.Sent = l.rate("sent", sent, since.Seconds())
	}
}

// pressure reads how long some task was stalled on CPU, memory or storage (PSI), and throttled by the control group.
func (l *linux) pressure(h *event.Host, since time.Duration) {
	for _, p := range [...]struct {
		file string
		r    *event.Reading
	}{{"proc/pressure/cpu", &h.CPUPressure}, {"proc/pressure/memory", &h.MemPressure}, {"proc/pressure/io", &h.IOPressure}} {
		raw, err := l.read(p.file)
		if err != nil {
			*p.r = readFailure(err)
			continue
		}
		if total, ok := parsePressure(raw); ok {
			*p.r = l.rate(p.file, total, since.Seconds()*1e6)
		}
	}
	h.Throttled = l.throttled(since)
}

// throttled returns the fraction of time in which the control group was throttled, from version 2 or 1.
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

// rate returns the increase of a machine counter per unit, over the given number of units; NotYet at the first read.
func (l *linux) rate(name string, now uint64, units float64) event.Reading {
	before, found := l.sums[name]
	l.sums[name] = now
	if !found {
		units = 0
	}
	return per(now, before, units)
}
