package trace

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// queueSize is the number of events that wait for the recorder at most, 192 bytes each in two buffers: 6 MB.
const queueSize = 1 << 14

// arrival is an event with the time at which it reached the recorder.
type arrival struct {
	at event.Time
	event.Event
	source int // number of the engine that it is about
}

// queue is what stands between producers, which never wait, and the recorder. A full or closed one drops and counts.
type queue struct {
	now  func() event.Time
	half chan struct{} // receives when the queue has become half full
	size int

	mu     sync.Mutex // guards what follows
	front  []arrival
	last   event.Time // of the newest arrival: times never go back
	lost   event.Lost
	closed bool
}

func newQueue(size int, now func() event.Time) *queue {
	return &queue{now: now, half: make(chan struct{}, 1), size: size, front: make([]arrival, 0, size)}
}

// emit stamps and queues an event of a source.
func (q *queue) emit(e *event.Event, source int) {
	q.mu.Lock()
	n := len(q.front)
	if n >= q.size || q.closed {
		count(&q.lost, e.Kind)
		q.mu.Unlock()
		return
	}
	q.last = max(q.last, q.now())
	q.front = append(q.front, arrival{q.last, *e, source})
	q.mu.Unlock()
	if n == q.size/2 {
		select {
		case q.half <- struct{}{}:
		default:
		}
	}
}

// count adds one event to what was lost. Kinds that do not exist have no place and cannot be emitted by this program.
func count(l *event.Lost, k event.Kind) {
	if k < event.NumKinds {
		l[k]++
	}
}

// swap takes what has arrived since the last swap and gives the buffer of the batch before back to producers.
func (q *queue) swap(done []arrival) (batch []arrival, lost event.Lost) {
	clear(done) // let go of what events refer to
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.front = q.front, done[:0]
	return batch, q.lost
}

// drop counts events that were queued and could not be recorded.
func (q *queue) drop(lost *event.Lost) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, n := range lost {
		q.lost[k] += n
	}
}

// close lets no more events in.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// time is the present on the clock of the arrivals.
func (q *queue) time() event.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(q.last, q.now())
}

// losses are cumulative counts of what was dropped.
func (q *queue) losses() event.Lost {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}
