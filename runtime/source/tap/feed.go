package tap

import (
	"io"
	"iter"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// feed hands the bytes of an answer to its reader, a coroutine that runs until it needs more of them. Nothing runs at the same
// time.
type feed struct {
	piece  []byte
	at     event.Time
	err    error // after piece
	yield  func(struct{}) bool
	resume func() (struct{}, bool)
	stop   func()
	left   bool // the reader has ended
}

// newFeed starts a reader. It runs for the first time when there is something to read.
func newFeed(read func(from io.Reader, at func() event.Time)) *feed {
	f := new(feed)
	f.resume, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		read(f, func() event.Time { return f.at })
	})
	return f
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	for len(f.piece) == 0 {
		if err := f.err; err != nil {
			if err == answers.ErrLost {
				f.err = nil // once
			}
			return 0, err
		}
		if !f.yield(struct{}{}) {
			f.err = io.ErrUnexpectedEOF
		}
	}
	n := copy(p, f.piece)
	f.piece = f.piece[n:]
	return n, nil
}

// put lets the reader read a piece, and then an error, if that is not nil.
func (f *feed) put(b []byte, at event.Time, err error) {
	if f.left {
		return
	}
	f.piece, f.at, f.err = b, at, err
	if _, more := f.resume(); !more {
		f.left = true
	}
	f.piece = nil
}
