package host

import (
	"maps"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// relistInterval is how often a Family lists all processes: it reads each of them.
const relistInterval = event.Time(10 * time.Second)

// Family samples engine processes together with all their descendants, because some engines compute in child processes.
// It must not be used concurrently.
type Family struct {
	os       system
	listed   event.Time
	children map[int][]int
	roots    map[int]*root
}

// root is the state of a process that is sampled with its descendants.
type root struct {
	gpus  gpuShares
	last  event.Time         // time of the last sample
	since time.Duration      // between the last two samples; 0: there was one
	disk  [2]float64         // bytes read and written by all of them, including those that have ended
	seen  map[int][2]float64 // counters of each process at the last sample; dropped when it ends, as pids are reused
}

// NewFamily prepares to sample; the caller must call Close.
func NewFamily() *Family {
	return &Family{os: newSystem(), roots: make(map[int]*root)}
}

// Close closes the files kept open between samples.
func (f *Family) Close() { f.os.close() }

// Sample sums the use of the process pid and its descendants, with rates since the last call for pid. Memory that they
// share counts once for each of them. The peak is reported only for a process without descendants, since peaks of
// several need not coincide. A value that cannot be read of one of them is absent from the sum. Bytes read and written
// do not fall when a sampled descendant ends. A process that has ended reports nothing.
func (f *Family) Sample(pid int, now event.Time) event.Process {
	r := f.roots[pid]
	if r == nil {
		r = &root{seen: make(map[int][2]float64)}
		f.roots[pid] = r
	} else {
		r.since = time.Duration(now - r.last)
	}
	r.last = now
	f.list(now)
	whole, ok := f.sampleOne(pid, r.since)
	if !ok {
		delete(f.roots, pid)
		return whole
	}
	r.count(pid, &whole)
	for _, child := range f.descendants(pid) {
		one, ok := f.sampleOne(child, r.since)
		if !ok {
			continue
		}
		r.count(child, &one)
		into, more := summedReadings(&whole), summedReadings(&one)
		for i := range into {
			*into[i] = addReadings(*into[i], *more[i])
		}
		whole.Peak = event.Absent(event.Undefined)
	}
	for i, sum := range []*event.Reading{&whole.ReadSum, &whole.WriteSum} {
		if sum.OK() {
			sum.V = r.disk[i]
		}
	}
	return whole
}

// Processes returns a process and its descendants as of its last Sample.
func (f *Family) Processes(pid int) []int { return append([]int{pid}, f.descendants(pid)...) }

// GPUs sets what a process and its descendants use of the GPUs in h. Without a process, neither its share nor that of
// others is reported.
func (f *Family) GPUs(h *event.Host, pid int) {
	var unknown gpuShares
	if r := f.roots[pid]; r != nil {
		r.gpus.set(h, f.Processes(pid))
	} else {
		unknown.set(h, nil)
	}
}

// Limits sets the memory of the machine in h, lowered to the limits of the control groups of a process as of its last
// Sample, with the other readings that depend on them. A process that was not sampled limits nothing.
func (f *Family) Limits(h *event.Host, pid int) {
	var since time.Duration
	if r := f.roots[pid]; r != nil {
		since = r.since
	}
	f.os.limits(h, pid, since)
}

// count adds the bytes that a process has read and written since its last sample.
func (r *root) count(pid int, p *event.Process) {
	before := r.seen[pid]
	for i, sum := range []event.Reading{p.ReadSum, p.WriteSum} {
		if !sum.OK() {
			continue
		}
		if sum.V < before[i] { // the pid belongs to another process now
			before[i] = 0
		}
		r.disk[i] += sum.V - before[i]
		before[i] = sum.V
	}
	r.seen[pid] = before
}

// list lists all processes and drops the state of those that have ended.
func (f *Family) list(now event.Time) {
	if f.children != nil && now-f.listed < relistInterval {
		return
	}
	parents := f.os.parents()
	f.listed, f.children = now, make(map[int][]int)
	for pid, parent := range parents {
		f.children[parent] = append(f.children[parent], pid)
	}
	gone := func(pid int) bool { _, ok := parents[pid]; return !ok }
	f.os.forget(gone)
	for pid, r := range f.roots {
		maps.DeleteFunc(r.seen, func(other int, _ [2]float64) bool { return other != pid && gone(other) })
	}
}

// descendants returns all direct and indirect children of a process.
func (f *Family) descendants(pid int) (all []int) {
	for next := f.children[pid]; len(next) > 0; {
		all = append(all, next...)
		var grand []int
		for _, p := range next {
			grand = append(grand, f.children[p]...)
		}
		next = grand
	}
	return all
}

// sampleOne samples a process without its descendants. If it has ended, it returns false and drops its state.
func (f *Family) sampleOne(pid int, since time.Duration) (p event.Process, ok bool) {
	p = f.os.process(pid, since)
	if p.CPU.Origin == event.NotReported && p.RSS.Origin == event.NotReported {
		f.os.forget(func(other int) bool { return other == pid })
		return p, false
	}
	return p, true
}

// summedReadings returns the readings of a process that are summed.
func summedReadings(p *event.Process) []*event.Reading {
	return []*event.Reading{
		&p.CPU, &p.RunWait, &p.RSS, &p.Read, &p.Write, &p.ReadOps, &p.WriteOps, &p.ReadSum, &p.WriteSum, &p.Faults, &p.MinorFaults,
		&p.Voluntary, &p.Involuntary, &p.Threads,
	}
}

// addReadings adds two readings. A new process has no rate yet and adds nothing; without permission to read one, the
// sum is absent.
func addReadings(a, b event.Reading) event.Reading {
	switch {
	case a.Origin == event.NotPermitted || b.Origin == event.NotPermitted:
		return event.Absent(event.NotPermitted)
	case !a.OK() || !b.OK():
		return a
	}
	a.V += b.V
	return a
}
