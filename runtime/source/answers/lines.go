package answers

import (
	"bytes"
	"io"
)

// lines splits an answer into lines.
type lines struct {
	from io.Reader

	buf     []byte
	begin   int  // start of the line in progress
	seen    int  // no line end before this offset
	tooLong bool // the line in progress is too long
	torn    bool // the last line returned had no line end
	err     error
}

// reads is the initial buffer size, in bytes. Most answers come in pieces of a few hundred bytes.
const reads = 2 << 10

// next returns the next line without its line end, valid until the next call. Text after the last line end is a line of
// its own. Errors: ErrLong for a line that was skipped, io.EOF at the end, ErrLost, of from, once for each hole: the
// line before it is dropped, and the next line is the rest of another. Other errors of from.
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

// fill moves the unread bytes to the front and reads once.
func (l *lines) fill() {
	if l.begin > 0 {
		n := copy(l.buf, l.buf[l.begin:])
		l.buf, l.seen, l.begin = l.buf[:n], l.seen-l.begin, 0
	}
	if len(l.buf) == cap(l.buf) {
		l.buf = append(make([]byte, 0, max(2*cap(l.buf), reads)), l.buf...)
	}
	n, err := l.from.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
}
