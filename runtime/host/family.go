package host

import (
	"maps"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// relist is how often a Family looks which processes there are: it reads each of them.
const relist = event.Time(10 * time.Second)

// Family samples processes of engines together with all that descend from them: some compute in processes of their own. It is for one
// goroutine at a time.
type Family struct {
	os       system
	listed   event.Time
	children map[int][]int
	roots    map[int]*root
}

// root is what is kept of a process that is sampled with its descendants.
type root struct {
	last event.Time         // when it was sampled
	disk [2]float64         // bytes that all of them have read and written, those that have ended included
	seen map[int][2]float64 // what each of them had counted of that; what ended is dropped, as another process may have its number by now
}

// NewFamily prepares to sample; Close ends it.
func NewFamily() *Family {
	return &Family{os: newSystem(), roots: make(map[int]*root)}
}

// Close lets go of what is kept open between samples.
func (f *Family) Close() { f.os.close() }

// Sample sums what the process pid and its descendants use now, rates over the time since the last call for it. Memory that they share counts once
// for each of them. The peak is that of a process without descendants, since peaks of several need not have been at one time. What one of them
// does not let be read is absent from the sum of all. What was read and written does not fall when a descendant ends that was sampled. A process that
// is gone reports nothing.
func (f *Family) Sample(pid int, now event.Time) event.Process {
	var since time.Duration
	r := f.roots[pid]
	if r == nil {
		r = &root{seen: make(map[int][2]float64)}
		f.roots[pid] = r
	} else {
		since = time.Duration(now - r.last)
	}
	r.last = now
	f.list(now)
	whole, ok := f.one(pid, since)
	if !ok {
		delete(f.roots, pid)
		return whole
	}
	r.count(pid, &whole)
	for _, child := range f.descendants(pid) {
		one, ok := f.one(child, since)
		if !ok {
			continue
		}
		r.count(child, &one)
		into, more := uses(&whole), uses(&one)
		for i := range into {
			*into[i] = together(*into[i], *more[i])
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

// count adds what a process has read and written since it was sampled last.
func (r *root) count(pid int, p *event.Process) {
	before := r.seen[pid]
	for i, sum := range []event.Reading{p.ReadSum, p.WriteSum} {
		if !sum.OK() {
			continue
		}
		if sum.V < before[i] { // another process has its number
			before[i] = 0
		}
		r.disk[i] += sum.V - before[i]
		before[i] = sum.V
	}
	r.seen[pid] = before
}

// list looks which processes there are, and forgets those that have ended.
func (f *Family) list(now event.Time) {
	if f.children != nil && now-f.listed < relist {
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

// descendants are the children of a process, theirs, and so on.
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

// one samples a process without its descendants; false if it is gone, and then nothing is kept of it.
func (f *Family) one(pid int, since time.Duration) (p event.Process, ok bool) {
	p = f.os.process(pid, since, false)
	if p.CPU.Origin == event.NotReported && p.RSS.Origin == event.NotReported {
		f.os.forget(func(other int) bool { return other == pid })
		return p, false
	}
	return p, true
}

// uses are the readings of a process that add up.
func uses(p *event.Process) []*event.Reading {
	return []*event.Reading{
		&p.CPU, &p.RunWait, &p.RSS, &p.Read, &p.Write, &p.ReadOps, &p.WriteOps, &p.ReadSum, &p.WriteSum, &p.Faults, &p.MinorFaults,
		&p.Voluntary, &p.Involuntary, &p.Threads,
	}
}

// together adds two readings. A process that has just begun has no rate yet and adds nothing; one that may not be read leaves the sum unknown.
func together(a, b event.Reading) event.Reading {
	switch {
	case a.Origin == event.NotPermitted || b.Origin == event.NotPermitted:
		return event.Absent(event.NotPermitted)
	case !a.OK() || !b.OK():
		return a
	}
	a.V += b.V
	return a
}
