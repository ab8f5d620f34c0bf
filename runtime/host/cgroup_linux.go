package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

func (l *linux) limits(h *event.Host, pid int, since time.Duration) {
	l.memory(h)
	h.CPULimit, h.Throttled, h.Limited = event.Absent(event.NotReported), event.Absent(event.NotReported), false
	state := l.procs[pid]
	if state == nil {
		return
	}
	if state.groups == nil {
		state.groups = cgroup.Of(l.root, pid, l.read)
	}
	g := state.groups
	g.Update()
	if limit, used, ok := g.Memory(); ok && (!h.MemTotal.OK() || float64(limit) < h.MemTotal.V) {
		h.MemTotal, h.MemUsed, h.Limited = measured(float64(limit)), measured(float64(used)), true
	}
	cores, limited := g.Quota()
	if limited {
		h.CPULimit, h.Limited = measured(cores), true
	}
	if ns, ok := g.Throttled(); ok {
		h.Throttled = event.Absent(event.NotYet)
		if state.throttledKnown {
			h.Throttled = per(ns, state.throttled, since.Seconds()*1e9)
		}
		state.throttled, state.throttledKnown = ns, true
	}
	h.Engine.Cores = l.available(pid, g)
}

// available returns the cores that a process may use: those of its affinity, which the kernel restricts to its cpuset, or
// its CPU quota if that is lower.
func (l *linux) available(pid int, g *cgroup.Groups) event.Reading {
	var set unix.CPUSet
	if err := l.affinity(pid, &set); err != nil {
		return readFailure(err)
	}
	cores := float64(set.Count())
	if quota, ok := g.Quota(); ok {
		cores = min(cores, quota)
	}
	return event.DerivedValue(cores)
}
