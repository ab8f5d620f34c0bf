package event

import "sync"

// DefaultQueue is the number of events that a Queue holds between two swaps: at 176 bytes an event, 2.9 MB a buffer.
const DefaultQueue = 1 << 14

// Queue is the Sink in front of a consumer: producers append to one buffer under a short lock while the consumer works through
// the other. A full buffer drops the newest events and counts them by kind; a producer never waits. Buffers of usual size are there from the
// beginning; smaller ones, of which there are many at a time, grow as they are needed.
type Queue struct {
	some, half chan struct{} // see Some and Half
	size       int           // capacity of each buffer

	mu    sync.Mutex // guards what follows
	front []Event
	lost  Lost
}

// NewQueue makes a queue of at most size events.
func NewQueue(size int) *Queue {
	return &Queue{some: make(chan struct{}, 1), half: make(chan struct{}, 1), size: size, front: buffer(size)}
}

func buffer(size int) []Event {
	if size < DefaultQueue {
		return nil
	}
	return make([]Event, 0, size)
}

// Emit implements Sink.
func (q *Queue) Emit(e Event) {
	q.mu.Lock()
	n := len(q.front)
	if n == q.size {
		if e.Kind < NumKinds {
			q.lost[e.Kind]++
		}
		q.mu.Unlock()
		return
	}
	q.front = append(q.front, e)
	q.mu.Unlock()
	switch n {
	case 0:
		signal(q.some)
	case q.size / 2:
		signal(q.half)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Some receives when the queue is no longer empty.
func (q *Queue) Some() <-chan struct{} { return q.some }

// Half receives when the queue has become half full and wants to be swapped.
func (q *Queue) Half() <-chan struct{} { return q.half }

// Swap takes what has been emitted since the last Swap, in order, and gives back to producers the buffer of the batch before,
// of which the consumer must be done. lost is cumulative.
func (q *Queue) Swap(done []Event) (batch []Event, lost Lost) {
	if cap(done) == 0 {
		done = buffer(q.size)
	}
	clear(done[:cap(done)][:len(done)]) // let go of what events refer to
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.front = q.front, done[:0]
	return batch, q.lost
}

// Tee is a Sink that hands every event to several.
type Tee []Sink

// Emit implements Sink.
func (t Tee) Emit(e Event) {
	for _, s := range t {
		s.Emit(e)
	}
}
