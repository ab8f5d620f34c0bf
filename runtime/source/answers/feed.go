package answers

import (
	"errors"
	"io"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxWaiting limits the bytes of one answer that wait to be read.
const maxWaiting = 4 << 20

// keptBuffer is the largest buffer that a Feed reuses after a burst, in bytes.
const keptBuffer = 64 << 10

// ErrBehind means that an answer arrived faster than it could be read.
var ErrBehind = errors.New("data arrived faster than it could be parsed")

// Feed carries the bytes of an answer from the goroutine that receives them to the one that reads them, each piece with the
// time at which it was received. Putting never blocks: a piece that exceeds maxWaiting ends the reading.
type Feed struct {
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

// NewFeed returns an empty feed. Read calls idle before it waits.
func NewFeed(idle func()) *Feed { return &Feed{ready: make(chan struct{}, 1), idle: idle} }

// Put adds a piece read at the given time. It does not wake the reader: see Wake.
func (f *Feed) Put(b []byte, at event.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.behind || f.closed:
	case len(f.waiting.bytes)+len(b) > maxWaiting:
		f.behind, f.waiting = true, pieces{}
	default:
		f.waiting.bytes = append(f.waiting.bytes, b...)
		f.waiting.ends = append(f.waiting.ends, piece{len(f.waiting.bytes), at})
	}
}

// Wake makes the reader look at new pieces. It is separate from Put so that bytes are forwarded first.
func (f *Feed) Wake() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Close marks the end of the input.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.Wake()
}

// Leave marks that no one reads any more.
func (f *Feed) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind, f.waiting = true, pieces{}
}

// At returns the time of the bytes that Read returned last.
func (f *Feed) At() event.Time { return f.at }

// Read implements io.Reader. It returns bytes of one piece only. Errors: io.EOF, ErrBehind.
func (f *Feed) Read(p []byte) (int, error) {
	for len(f.taken.ends) == 0 {
		if err := f.take(); err != nil {
			return 0, err
		}
		if len(f.taken.ends) == 0 {
			f.idle()
			<-f.ready
		}
	}
	first := f.taken.ends[0]
	n := copy(p, f.taken.bytes[f.read:first.end])
	f.at = first.at
	if f.read += n; f.read == first.end {
		f.taken.ends = f.taken.ends[1:]
	}
	return n, nil
}

// take swaps the pieces already read for the waiting ones.
func (f *Feed) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.behind:
		return ErrBehind
	case len(f.waiting.ends) == 0 && f.closed:
		return io.EOF
	case len(f.waiting.ends) == 0:
		return nil
	}
	done := pieces{f.taken.bytes[:0], f.taken.ends[:0]}
	if cap(done.bytes) > keptBuffer {
		done = pieces{}
	}
	f.taken, f.waiting, f.read = f.waiting, done, 0
	return nil
}
