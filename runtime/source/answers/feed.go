package answers

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxWaiting limits the bytes of one answer that wait to be read.
const maxWaiting = 4 << 20

// ErrBehind means that an answer arrived faster than it could be read.
var ErrBehind = errors.New("data arrived faster than it could be parsed")

// Feed carries the bytes of an answer from the goroutine that receives them to the one that reads them, each piece with the
// time at which it was received. Putting never blocks: a piece that exceeds maxWaiting ends the reading.
type Feed struct {
	ready chan struct{} // signals a change of the fields under mu
	idle  func()        // called by Read before it waits

	mu      sync.Mutex // guards the fields below
	waiting []piece
	size    int  // bytes of waiting
	behind  bool // the limit was exceeded, or the reader left
	closed  bool

	taken piece // being read; used only by Read
}

// piece is what is left of the bytes that were received at a time.
type piece struct {
	left []byte
	at   event.Time
}

// NewFeed returns an empty feed. Read calls idle before it waits.
func NewFeed(idle func()) *Feed { return &Feed{ready: make(chan struct{}, 1), idle: idle} }

// Put adds a piece read at the given time. It does not wake the reader: see Wake.
func (f *Feed) Put(b []byte, at event.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.behind || f.closed {
		return
	}
	if f.size += len(b); f.size > maxWaiting {
		f.behind, f.waiting = true, nil
		return
	}
	f.waiting = append(f.waiting, piece{bytes.Clone(b), at})
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
	f.behind, f.waiting = true, nil
}

// At returns the time of the bytes that Read returned last.
func (f *Feed) At() event.Time { return f.taken.at }

// Read implements io.Reader. It returns bytes of one piece only. Errors: io.EOF, ErrBehind.
func (f *Feed) Read(p []byte) (int, error) {
	for len(f.taken.left) == 0 {
		switch taken, err := f.take(); {
		case err != nil:
			return 0, err
		case !taken:
			f.idle()
			<-f.ready
		}
	}
	n := copy(p, f.taken.left)
	f.taken.left = f.taken.left[n:]
	return n, nil
}

// take takes the next piece. It reports false if none is waiting.
func (f *Feed) take() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.behind:
		return false, ErrBehind
	case len(f.waiting) > 0:
		f.taken, f.waiting = f.waiting[0], f.waiting[1:]
		f.size -= len(f.taken.left)
		return true, nil
	case f.closed:
		return false, io.EOF
	}
	return false, nil
}
