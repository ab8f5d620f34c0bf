package proxy

import (
	"errors"
	"io"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxHeld bounds what waits of one answer to be observed, in bytes.
const maxHeld = 4 << 20

// keptBuffer is the largest buffer that a tap goes on to use after a burst, in bytes.
const keptBuffer = 64 << 10

// errBehind is the error of an answer that came faster than it could be observed.
var errBehind = errors.New("it came faster than it could be read")

// tap carries a copy of the bytes of an answer from the goroutine that passes them on to the one that observes them, each piece with the
// moment at which it was read. The first never waits: a piece that finds no room ends the observation.
type tap struct {
	ready chan struct{} // there is something new to see in what mu guards
	idle  func()        // called by Read before it waits

	mu     sync.Mutex // guards what follows
	held   pieces
	behind bool // something found no room, or is not wanted any more
	closed bool

	taken pieces     // being read; only Read uses it
	read  int        // bytes of taken that were handed out
	at    event.Time // of the piece that Read returned last
}

// pieces are bytes with where each of their pieces ends.
type pieces struct {
	bytes []byte
	ends  []piece
}

type piece struct {
	end int
	at  event.Time
}

func newTap(idle func()) *tap { return &tap{ready: make(chan struct{}, 1), idle: idle} }

// put adds a piece that was read at the given moment. The observer is not woken up: see wake.
func (t *tap) put(b []byte, at event.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.behind || t.closed:
	case len(t.held.bytes)+len(b) > maxHeld:
		t.behind, t.held = true, pieces{}
	default:
		t.held.bytes = append(t.held.bytes, b...)
		t.held.ends = append(t.held.ends, piece{len(t.held.bytes), at})
	}
}

// wake has the observer look at what was put. It is apart from put so that the bytes are on their way before anything else is done.
func (t *tap) wake() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// close says that nothing more will be put.
func (t *tap) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wake()
}

// leave says that nothing more will be read.
func (t *tap) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind, t.held = true, pieces{}
}

// Read implements io.Reader. It returns bytes of one piece only. Errors: io.EOF, errBehind.
func (t *tap) Read(p []byte) (int, error) {
	for len(t.taken.ends) == 0 {
		if err := t.take(); err != nil {
			return 0, err
		}
		if len(t.taken.ends) == 0 {
			t.idle()
			<-t.ready
		}
	}
	first := t.taken.ends[0]
	n := copy(p, t.taken.bytes[t.read:first.end])
	t.at = first.at
	if t.read += n; t.read == first.end {
		t.taken.ends = t.taken.ends[1:]
	}
	return n, nil
}

// take swaps what was put for what has been read.
func (t *tap) take() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.behind:
		return errBehind
	case len(t.held.ends) == 0 && t.closed:
		return io.EOF
	case len(t.held.ends) == 0:
		return nil
	}
	done := pieces{t.taken.bytes[:0], t.taken.ends[:0]}
	if cap(done.bytes) > keptBuffer {
		done = pieces{}
	}
	t.taken, t.held, t.read = t.held, done, 0
	return nil
}
