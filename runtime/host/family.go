package host

import (
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
	last     map[int]event.Time // when each root was sampled
}

// NewFamily prepares to sample; Close ends it.
func NewFamily() *Family {
	return &Family{os: newSystem(), last: map[int]event.Time{}}
}

// Close lets go of what is kept open between samples.
func (f *Family) Close() { f.os.close() }

// Sample sums what the process pid and its descendants use now, rates over the time since the last call for it. Memory that they share counts once
// for each of them. The peak is that of a process without descendants, since peaks of several need not have been at one time. What one of them
// does not let be read is absent from the sum of all. A process that is gone reports nothing.
func (f *Family) Sample(pid int, now event.Time) event.Process {
	var since time.Duration
	if before, ok := f.last[pid]; ok {
		since = time.Duration(now - before)
	}
	f.last[pid] = now
	f.list(now)
	whole, ok := f.one(pid, since)
	if !ok {
		delete(f.last, pid)
		return whole
	}
	for _, child := range f.descendants(pid) {
		one, ok := f.one(child, since)
		if !ok {
			continue
		}
		into, more := uses(&whole), uses(&one)
		for i := range into {
			*into[i] = together(*into[i], *more[i])
		}
		whole.Peak = event.Absent(event.Undefined)
	}
	return whole
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
	f.os.forget(func(pid int) bool { _, ok := parents[pid]; return !ok })
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
