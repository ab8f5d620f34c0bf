package socket

import "github.com/llmtop/llmtop/profiler/event"

// DefaultBuffer is how many events wait for the slowest reader at most. All readers share them: at 176 bytes an event 5.8 MB.
const DefaultBuffer = 1 << 15

// ring holds the newest events for all readers. An event that finds it full takes the place of the oldest one; by the counts of what
// has left, each reader knows exactly what it has missed. The server's mutex guards it.
type ring struct {
	events     []event.Event          // number n at n % len
	head, tail uint64                 // numbers of the next event, and of the oldest one
	pushed     event.Lost             // events before head, by kind
	left       event.Lost             // events before tail, by kind
	newest     [event.NumKinds]uint64 // number of the newest event of each kind that is cumulative, plus 1
}

// push appends an event.
func (r *ring) push(e *event.Event) {
	size := uint64(len(r.events))
	at := &r.events[r.head%size]
	if r.head-r.tail == size {
		r.left[at.Kind]++
		r.tail++
	}
	if cumulative(e.Kind) {
		r.replace(e.Kind)
		r.newest[e.Kind] = r.head + 1
	}
	*at = *e
	r.pushed[e.Kind]++
	r.head++
}

// cumulative reports whether the newest event of a kind is all that anybody needs: router counts and times of operations, which may be large.
func cumulative(k event.Kind) bool { return k == event.KindExperts || k == event.KindOps }

// replace lets go of what the last event of a kind refers to.
func (r *ring) replace(k event.Kind) {
	if last := r.newest[k]; last > r.tail {
		r.events[(last-1)%uint64(len(r.events))].Data = nil
	}
}

// clear forgets all events.
func (r *ring) clear() {
	clear(r.events)
	r.tail, r.left, r.newest = r.head, r.pushed, [event.NumKinds]uint64{}
}

// cursor is where a reader stands.
type cursor struct {
	next uint64     // number of the next event for it
	left event.Lost // events before next, by kind, counted as in ring.left
}

// begin is a cursor for what comes from now on.
func (r *ring) begin() cursor { return cursor{next: r.head, left: r.pushed} }

// take copies the next events to dst, as many as fit, and adds to lost what the reader has missed before them.
func (r *ring) take(c *cursor, dst []event.Event, lost *event.Lost) []event.Event {
	if c.next < r.tail {
		for k := range lost {
			lost[k] += r.left[k] - c.left[k]
		}
		c.next, c.left = r.tail, r.left
	}
	size := uint64(len(r.events))
	dst = dst[:min(r.head-c.next, uint64(cap(dst)))]
	for i := range dst {
		at := &r.events[c.next%size]
		dst[i] = *at
		c.left[at.Kind]++
		c.next++
	}
	return dst
}
