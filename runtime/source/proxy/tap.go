package proxy

import (
	"errors"
	"io"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxWaiting limits the bytes of one answer that wait for the observer.
const maxWaiting = 4 << 20

// keptBuffer is the largest buffer that a tap reuses after a burst, in bytes.
const keptBuffer = 64 << 10

// errBehind means that an answer arrived faster than it could be observed.
var errBehind = errors.New("data arrived faster than it could be parsed")

// tap carries a copy of an answer's bytes from the forwarding goroutine to the observer, each piece with the time of
// its read. Writing never blocks: a piece that exceeds maxWaiting ends the observation.
type tap struct {
	ready chan struct{} // signals a change of the fields under mu
	idle  func()        // called by Read before it waits

	mu      sync.Mutex // guards the fields below
	waiting pieces
	behind  bool // the limit was exceeded, or the reader left
	closed  bool

	taken pieces     // being read; used only by Read
	read  int        // bytes of taken already returned
	at    event.Time // time of the piece that Read returned last
}

// pieces is a buffer with the end offsets of its pieces.
type pieces struct {
	bytes []byte
	ends  []piece
}

type piece struct {
	end int
	at  event.Time
}

func newTap(idle func()) *tap { return &tap{ready: make(chan struct{}, 1), idle: idle} }

// put adds a piece read at the given time. It does not wake the observer: see wake.
func (t *tap) put(b []byte, at event.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.behind || t.closed:
	case len(t.waiting.bytes)+len(b) > maxWaiting:
		t.behind, t.waiting = true, pieces{}
	default:
		t.waiting.bytes = append(t.waiting.bytes, b...)
		t.waiting.ends = append(t.waiting.ends, piece{len(t.waiting.bytes), at})
	}
}

// wake makes the observer look at new pieces. It is separate from put so that bytes are forwarded first.
func (t *tap) wake() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// close marks the end of the input.
func (t *tap) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wake()
}

// leave marks that no one reads any more.
func (t *tap) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind, t.waiting = true, pieces{}
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

// take swaps the pieces already read for the waiting ones.
func (t *tap) take() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.behind:
		return errBehind
	case len(t.waiting.ends) == 0 && t.closed:
		return io.EOF
	case len(t.waiting.ends) == 0:
		return nil
	}
	done := pieces{t.taken.bytes[:0], t.taken.ends[:0]}
	if cap(done.bytes) > keptBuffer {
		done = pieces{}
	}
	t.taken, t.waiting, t.read = t.waiting, done, 0
	return nil
}
