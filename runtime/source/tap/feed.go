package tap

import (
	"iter"
	"net/http"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// feed hands the bytes of an answer to its observer, which reads until it needs more of them. Nothing runs at the same time.
type feed struct {
	observer *answers.Observer // nil: there is no answer yet
	piece    []byte
	at       event.Time
	err      error               // after piece
	left     bool                // the observer has ended
	read     func() (ended bool) // lets the observer begin, or go on
	wait     func(struct{}) bool // of a coroutine; otherwise nil
}

// start begins to feed an observer. It reads once there is something to read. packed: decompression cannot return in the middle
// of its input, so it runs in a coroutine.
func (f *feed) start(o *answers.Observer, status int, header http.Header, packed bool) {
	f.observer = o
	begin := func() bool { return o.Read(status, header, f, func() event.Time { return f.at }) }
	f.read = func() bool {
		f.read = o.Resume
		return begin()
	}
	if packed {
		next, _ := iter.Pull(func(wait func(struct{}) bool) {
			f.wait = wait
			begin()
		})
		f.read = func() bool {
			_, more := next()
			return !more
		}
	}
}

// Piece returns the rest of the piece.
func (f *feed) Piece() ([]byte, error) {
	for len(f.piece) == 0 {
		switch err := f.err; {
		case err != nil:
			if err == answers.ErrLost {
				f.err = nil // once
			}
			return nil, err
		case f.wait == nil:
			return nil, answers.ErrMore
		}
		f.wait(struct{}{})
	}
	b := f.piece
	f.piece = nil
	return b, nil
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	b, err := f.Piece()
	n := copy(p, b)
	f.piece = b[n:]
	return n, err
}

// put lets the observer read a piece, and then an error, if that is not nil.
func (f *feed) put(b []byte, at event.Time, err error) {
	if f.left {
		return
	}
	f.piece, f.at, f.err = b, at, err
	f.left = f.read()
	f.piece = nil
}
