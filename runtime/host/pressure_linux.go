package host

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
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

// pressure reads how long some task was stalled on CPU, memory or storage (PSI).
func (l *linux) pressure(h *event.Host, since time.Duration) {
	for _, p := range [...]struct {
		resource string
		r        *event.Reading
	}{{"cpu", &h.CPUPressure}, {"memory", &h.MemPressure}, {"io", &h.IOPressure}} {
		psi, err := l.read("proc/pressure/" + p.resource)
		*p.r = readFailure(err)
		if us, ok := cgroup.ParsePressure(psi); ok {
			*p.r = l.rate(p.resource, us, since.Seconds()*1e6)
		}
	}
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
