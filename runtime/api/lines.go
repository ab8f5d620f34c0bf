package api

import (
	"bytes"
	"errors"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxLine bounds a line and an event of an answer, in bytes. The longest that servers send on purpose, the token ids of a whole context at the
// end of an Ollama answer, is some MB.
const maxLine = 8 << 20

// errLongLine is the error of a longer one.
var errLongLine = errors.New("the server sent a line of more than 8 MiB")

// lines splits an answer into lines, each with the moment at which its last byte was read.
type lines struct {
	from  io.Reader
	clock func() event.Time // when the last read of from has returned with bytes

	buf      []byte
	at       event.Time // of the last read
	begin    int        // of what was not handed out yet
	searched int        // up to where there is no line end
	err      error
}

// reads is how much is read at once. Most answers come in pieces of some hundred bytes.
const reads = 4 << 10

func newLines(from io.Reader, clock func() event.Time) *lines {
	return &lines{from: from, clock: clock, buf: make([]byte, 0, reads)}
}

// next is the next line without its end, valid until the next call. What stands after the last line end comes as a line of its own. Errors
// are those of reading, io.EOF at the end, and errLongLine.
func (l *lines) next() ([]byte, event.Time, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.searched:], '\n'); i >= 0 {
			line := l.buf[l.begin : l.searched+i]
			l.begin, l.searched = l.searched+i+1, l.searched+i+1
			return bytes.TrimSuffix(line, []byte{'\r'}), l.at, nil
		}
		l.searched = len(l.buf)
		switch {
		case l.err == io.EOF && l.begin < len(l.buf):
			line := l.buf[l.begin:]
			l.begin = len(l.buf)
			return line, l.at, nil
		case l.err != nil:
			return nil, l.at, l.err
		case len(l.buf)-l.begin > maxLine:
			l.err = errLongLine
			return nil, l.at, l.err
		}
		l.fill()
	}
}

// fill reads once, after it has moved what is left to the front.
func (l *lines) fill() {
	if l.begin > 0 {
		n := copy(l.buf, l.buf[l.begin:])
		l.buf, l.begin, l.searched = l.buf[:n], 0, l.searched-l.begin
	}
	if len(l.buf) == cap(l.buf) {
		l.buf = append(make([]byte, 0, 2*cap(l.buf)), l.buf...)
	}
	n, err := l.from.Read(l.buf[len(l.buf):cap(l.buf)])
	if n > 0 {
		l.buf, l.at = l.buf[:len(l.buf)+n], l.clock()
	}
	l.err = err
}
