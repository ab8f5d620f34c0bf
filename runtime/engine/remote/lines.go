package remote

import (
	"bytes"
	"errors"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxLine limits a line and an event of an answer, in bytes. The longest regular one, the token ids of a full context
// at the end of an Ollama answer, has a few MB.
const maxLine = 8 << 20

// Limits of one answer, so that an endless answer cannot fill the memory. Long outputs have some 100,000 tokens, each
// less than 1 KB with everything sent around it.
const (
	maxStream = 512 << 20 // bytes
	maxTokens = 1 << 18   // unless the request allows more
	maxText   = 1 << 20   // bytes of text kept in a Result
	maxPiece  = 64 << 10  // bytes of text in one event
)

// errLongLine and errLongAnswer mean that maxLine or maxStream was exceeded.
var (
	errLongLine   = errors.New("the server sent a line of more than 8 MiB")
	errLongAnswer = errors.New("the server sent an answer of more than 512 MiB")
)

// lines splits an answer into lines and stamps each with the time at which its last byte was read.
type lines struct {
	from  io.Reader
	clock func() event.Time // time of the last read of from that returned bytes

	left     int // bytes that may still be read
	buf      []byte
	at       event.Time // time of the last read
	begin    int        // start of the line in progress
	searched int        // no line end before this offset
	err      error
}

// reads is the initial buffer size, in bytes. Most answers come in pieces of a few hundred bytes.
const reads = 4 << 10

func newLines(from io.Reader, clock func() event.Time) *lines {
	return &lines{from: from, clock: clock, left: maxStream, buf: make([]byte, 0, reads)}
}

// next returns the next line without its line end, valid until the next call. Text after the last line end is a line of
// its own. Errors: io.EOF at the end, errLongLine, errLongAnswer, and those of from.
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

// fill moves the unread bytes to the front and reads once.
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
	if l.left -= n; l.left < 0 {
		l.err = errLongAnswer
	}
}
