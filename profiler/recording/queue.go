package recording

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

// queueSize is how many events wait for the recorder at most, 192 bytes each in two buffers: 6 MB.
const queueSize = 1 << 14

// queue holds the events from producers, which never wait, for the recorder. If it is full or closed, it drops events
// and counts them.
type queue struct {
	now  func() event.Time
	half chan struct{} // signals that the queue is half full
	size int

	mu      sync.Mutex // guards what follows
	front   []catchup.Entry
	last    event.Time // of the newest arrival: times never decrease
	dropped event.Drops
	closed  bool
}

func newQueue(size int, now func() event.Time) *queue {
	return &queue{now: now, half: make(chan struct{}, 1), size: size, front: make([]catchup.Entry, 0, size)}
}

// emit stamps and queues an event of an engine.
func (q *queue) emit(e *event.Event, engine int) {
	q.mu.Lock()
	n := len(q.front)
	if q.closed || !event.HasRoom(n, q.size, e.Kind) {
		count(&q.dropped, e.Kind)
		q.mu.Unlock()
		return
	}
	q.last = max(q.last, q.now())
	q.front = append(q.front, catchup.Entry{Event: *e, Arrived: q.last, Engine: engine})
	q.mu.Unlock()
	if n == q.size/2 {
		select {
		case q.half <- struct{}{}:
		default:
		}
	}
}

// count counts one dropped event. Kinds out of range are ignored; this program does not emit them.
func count(l *event.Drops, k event.Kind) {
	if k < event.NumKinds {
		l[k]++
	}
}

// swap returns the queued events and all drops so far, and returns the buffer of the previous batch to producers.
func (q *queue) swap(done []catchup.Entry) (batch []catchup.Entry, dropped event.Drops) {
	clear(done) // release what the events refer to
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.front = q.front, done[:0]
	return batch, q.dropped
}

// drop counts queued events that could not be recorded.
func (q *queue) drop(more *event.Drops) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, n := range more {
		q.dropped[k] += n
	}
}

// close drops all further events.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// time returns the current time on the clock of the arrivals.
func (q *queue) time() event.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(q.last, q.now())
}

// drops returns the cumulative drops.
func (q *queue) drops() event.Drops {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
