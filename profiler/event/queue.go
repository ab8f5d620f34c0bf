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

// Queue holds events, or more of each, for a consumer. Producers append to one buffer under a short lock while the consumer
// processes the other. A full buffer drops new events and counts them by kind; producers never wait. Tokens leave room
// for the ends of requests, which would otherwise seem to run for ever, see hasRoom. Buffers grow on demand, and keep
// their size while it is used.
type Queue[T any] struct {
	nonEmpty, halfFull chan struct{} // see NonEmpty and HalfFull
	filled             atomic.Bool   // see Empty

	mu    sync.Mutex // guards what follows
	size  int        // capacity of each buffer, events; 0 after Close
	front []T
	drops Drops
}

// NewQueue returns a queue of at most size events.
func NewQueue[T any](size int) *Queue[T] {
	return &Queue[T]{nonEmpty: make(chan struct{}, 1), halfFull: make(chan struct{}, 1), size: size}
}

// Put adds an event of a kind.
func (q *Queue[T]) Put(v T, k Kind) {
	q.mu.Lock()
	n, half := len(q.front), q.size/2
	if !hasRoom(n, q.size, k) {
		q.drops.Count(k)
		q.mu.Unlock()
		return
	}
	if n == cap(q.front) {
		q.front = append(make([]T, 0, min(max(2*n, leastQueue), q.size)), q.front...)
	}
	if q.front = append(q.front, v); n == 0 {
		q.filled.Store(true)
	}
	q.mu.Unlock()
	switch n {
	case 0:
		signal(q.nonEmpty)
	case half:
		signal(q.halfFull)
	}
}

// hasRoom reports whether a queue of n events with capacity size accepts another one of kind k. The last eighth is
// reserved for kinds that do not occur with every token.
func hasRoom(n, size int, k Kind) bool {
	if k == KindToken || k == KindStage || k == KindStep {
		size -= size / 8
	}
	return n < size
}

// Close drops all further events.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.size = 0
	q.mu.Unlock()
}

// Drops returns the cumulative drop counts.
func (q *Queue[T]) Drops() Drops {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.drops
}

// Drop counts events that the consumer could not use.
func (q *Queue[T]) Drop(more *Drops) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, n := range more {
		q.drops[k] += n
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Empty reports whether Swap would return no events. It does not wait for producers: hundreds of queues are asked ten times
// a second.
func (q *Queue[T]) Empty() bool { return !q.filled.Load() }

// NonEmpty receives when the queue is no longer empty.
func (q *Queue[T]) NonEmpty() <-chan struct{} { return q.nonEmpty }

// HalfFull receives when the queue has become half full and should be swapped.
func (q *Queue[T]) HalfFull() <-chan struct{} { return q.halfFull }

// Swap returns the events since the last Swap, in order, and the cumulative drop counts. done is the previous batch,
// which the consumer must no longer use: producers reuse its buffer.
func (q *Queue[T]) Swap(done []T) (batch []T, drops Drops) {
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
