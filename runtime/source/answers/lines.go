package answers

import (
	"bytes"
	"io"
)

// lines splits an answer into lines.
type lines struct {
	from     io.Reader
	place    inPlace // from, if it is one; otherwise nil
	buf      []byte
	borrowed bool   // buf is a piece of place
	own      []byte // what buf is otherwise
	begin    int    // start of the line in progress
	seen     int    // no line end before this offset
	tooLong  bool   // the line in progress is too long
	torn     bool   // the last line returned had no line end
	err      error
}

// inPlace is a reader that need not copy what it has.
type inPlace interface {
	// Piece is Read without a copy: the bytes are valid until Piece or Read is called again.
	Piece() ([]byte, error)
}

// reads is the initial buffer size, in bytes. Most answers come in pieces of a few hundred bytes.
const reads = 2 << 10

// next returns the next line without its line end, valid until the next call. Text after the last line end is a line of
// its own. Errors: ErrLong for a line that was skipped, io.EOF at the end, ErrLost, of from, once for each hole: the
// line before it is dropped, and the next line is the rest of another; ErrMore, each time. Other errors of from.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:], '\n'); i >= 0 {
			line := l.buf[l.begin : l.seen+i]
			l.seen += i + 1
			l.begin = l.seen
			if l.tooLong {
				l.tooLong = false
				return nil, ErrLong
			}
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		l.seen = len(l.buf)
		switch {
		case l.err == ErrMore:
			l.err = nil
			return nil, ErrMore
		case l.err != nil && l.tooLong:
			l.tooLong = false
			return nil, ErrLong
		case l.err == io.EOF && l.begin < len(l.buf):
			line := l.buf[l.begin:]
			l.begin, l.torn = len(l.buf), true
			return line, nil
		case l.err == ErrLost:
			l.err, l.begin, l.tooLong = nil, len(l.buf), false
			return nil, ErrLost
		case l.err != nil:
			return nil, l.err
		case len(l.buf)-l.begin > MaxMessage:
			l.tooLong = true
		}
		if l.tooLong {
			l.begin = l.seen
		}
		l.fill()
	}
}

// fill moves the unread bytes to the front and reads once: in place, if there are none.
func (l *lines) fill() {
	if l.place != nil && l.begin == len(l.buf) {
		l.begin, l.seen, l.borrowed = 0, 0, true
		l.buf, l.err = l.place.Piece()
		return
	}
	if l.begin > 0 || l.borrowed {
		l.buf, l.seen, l.begin, l.borrowed = append(l.own[:0], l.buf[l.begin:]...), l.seen-l.begin, 0, false
	}
	if len(l.buf) == cap(l.buf) {
		l.buf = append(make([]byte, 0, max(2*cap(l.buf), reads)), l.buf...)
	}
	n, err := l.from.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
	l.own = l.buf
}

// event returns the data of the next server-sent event if that is one line and was read whole: nearly all are. Valid until
// the next call.
func (l *lines) event() (data []byte, ok bool) {
	if data, ok = bytes.CutPrefix(l.buf[l.begin:], []byte("data:")); !ok || l.seen != l.begin || l.tooLong {
		return nil, false
	}
	data, rest, _ := bytes.Cut(data, []byte{'\n'})
	blank, rest, ok := bytes.Cut(rest, []byte{'\n'})
	if !ok || len(bytes.TrimSuffix(blank, []byte{'\r'})) > 0 {
		return nil, false
	}
	l.begin = len(l.buf) - len(rest)
	l.seen = l.begin
	return bytes.TrimPrefix(bytes.TrimSuffix(data, []byte{'\r'}), []byte{' '}), true
}
