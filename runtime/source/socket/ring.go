package socket

import "github.com/llmtop/llmtop/profiler/event"

// DefaultBuffer is the number of events that can wait for the slowest reader. All readers share them: 5.8 MB at 176
// bytes each.
const DefaultBuffer = 1 << 15

// ring holds the newest events for all readers. A full ring overwrites the oldest event. Its counts per kind show each
// reader exactly how many events it missed. The server's mutex guards it.
type ring struct {
	events     []event.Event          // event n is at n % len
	head, tail uint64                 // numbers of the next event and of the oldest one
	pushed     event.Drops            // events before head, by kind
	left       event.Drops            // events before tail, by kind
	newest     [event.NumKinds]uint64 // number of the newest event of each cumulative kind, plus 1
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

// cumulative reports whether only the newest event of a kind matters: router counts and operation times, which may be
// large.
func cumulative(k event.Kind) bool { return k == event.KindExperts || k == event.KindOps }

// replace releases the data of the last event of a kind.
func (r *ring) replace(k event.Kind) {
	if last := r.newest[k]; last > r.tail {
		r.events[(last-1)%uint64(len(r.events))].Data = nil
	}
}

// clear removes all events.
func (r *ring) clear() {
	clear(r.events)
	r.tail, r.left, r.newest = r.head, r.pushed, [event.NumKinds]uint64{}
}

// cursor is the position of a reader.
type cursor struct {
	next uint64      // number of its next event
	left event.Drops // events before next, by kind, counted as in ring.left
}

// begin returns a cursor at the end.
func (r *ring) begin() cursor { return cursor{next: r.head, left: r.pushed} }

// take copies the next events to dst, up to its capacity, and adds the events that the reader missed to lost.
func (r *ring) take(c *cursor, dst []event.Event, lost *event.Drops) []event.Event {
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
