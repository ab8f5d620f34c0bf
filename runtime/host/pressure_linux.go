package host

import (
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"

	"github.com/llmtop/llmtop/profiler/event"
)

// proc returns the file system at /proc, for the files that procfs reads. It opens them for each sample.
func (l *linux) proc() (procfs.FS, error) { return procfs.NewFS(filepath.Join(l.root, "proc")) }

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
	h.Throttled = l.throttled(since)
	for _, p := range [...]struct {
		resource string
		r        *event.Reading
	}{{"cpu", &h.CPUPressure}, {"memory", &h.MemPressure}, {"io", &h.IOPressure}} {
		fs, err := l.proc()
		if err != nil {
			*p.r = readFailure(err)
			continue
		}
		stalls, err := fs.PSIStatsForResource(p.resource)
		switch {
		case err != nil:
			*p.r = readFailure(err)
		case stalls.Some != nil:
			*p.r = l.rate(p.resource, stalls.Some.Total, since.Seconds()*1e6)
		}
	}
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
