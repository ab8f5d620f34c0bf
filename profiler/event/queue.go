package event

import (
	"sync"
	"sync/atomic"
)

// DefaultQueue is the number of events that a Queue holds between two swaps: 176 bytes each, up to 2.9 MB per buffer.
const DefaultQueue = 1 << 14

// leastQueue is the number of events that a buffer has room for at first: those of a server that is polled, of which there
// may be hundreds.
const leastQueue = 2

// Queue is the Sink in front of a consumer. Producers append to one buffer under a short lock while the consumer
// processes the other. A full buffer drops new events and counts them by kind; producers never wait. Tokens leave room
// for the ends of requests, which would otherwise seem to run for ever, see HasRoom. Buffers grow on demand, and keep
// their size while it is used.
type Queue struct {
	nonEmpty, halfFull chan struct{} // see NonEmpty and HalfFull
	filled             atomic.Bool   // see Empty
	size               int           // capacity of each buffer, events

	mu    sync.Mutex // guards what follows
	front []Event
	drops Drops
}

// NewQueue returns a queue of at most size events.
func NewQueue(size int) *Queue {
	return &Queue{nonEmpty: make(chan struct{}, 1), halfFull: make(chan struct{}, 1), size: size}
}

// Emit implements Sink.
func (q *Queue) Emit(e Event) {
	q.mu.Lock()
	n := len(q.front)
	if !HasRoom(n, q.size, e.Kind) {
		if e.Kind < NumKinds {
			q.drops[e.Kind]++
		}
		q.mu.Unlock()
		return
	}
	if n == cap(q.front) {
		q.front = append(make([]Event, 0, min(max(2*n, leastQueue), q.size)), q.front...)
	}
	if q.front = append(q.front, e); n == 0 {
		q.filled.Store(true)
	}
	q.mu.Unlock()
	switch n {
	case 0:
		signal(q.nonEmpty)
	case q.size / 2:
		signal(q.halfFull)
	}
}

// HasRoom reports whether a queue of n events with capacity size accepts another one of kind k. The last eighth is
// reserved for kinds that do not occur with every token.
func HasRoom(n, size int, k Kind) bool {
	if k == KindToken || k == KindStage || k == KindStep {
		size -= size / 8
	}
	return n < size
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Empty reports whether Swap would return no events. It does not wait for producers: hundreds of queues are asked ten times
// a second.
func (q *Queue) Empty() bool { return !q.filled.Load() }

// NonEmpty receives when the queue is no longer empty.
func (q *Queue) NonEmpty() <-chan struct{} { return q.nonEmpty }

// HalfFull receives when the queue has become half full and should be swapped.
func (q *Queue) HalfFull() <-chan struct{} { return q.halfFull }

// Swap returns the events since the last Swap, in order, and the cumulative drop counts. done is the previous batch,
// which the consumer must no longer use: producers reuse its buffer.
func (q *Queue) Swap(done []Event) (batch []Event, drops Drops) {
	if clear(done); len(done) <= leastQueue && cap(done) <= 8*leastQueue { // release what the events refer to
		done = nil // and a small buffer of which little was used
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.front = q.front, done[:0]
	q.filled.Store(false)
	return batch, q.drops
}

// Tee is a Sink that passes every event to several sinks. An empty one drops all events.
type Tee []Sink

// Emit implements Sink.
func (t Tee) Emit(e Event) {
	for _, s := range t {
		s.Emit(e)
	}
}
