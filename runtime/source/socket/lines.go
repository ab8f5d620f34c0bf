package socket

import (
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/llmtop/llmtop/profiler/event/wire"
)

// lines splits a connection's bytes into lines. A read timeout loses nothing: the next call continues.
type lines struct {
	from      io.Reader
	most      int  // maximum bytes of a line
	strict    bool // a longer line is an error
	buffer    []byte
	at, end   int    // start and end of unread bytes in buffer
	seen      int    // bytes after at without a line end
	tooLong   bool   // the line is too long; its rest is skipped
	malformed uint64 // lines that were too long
}

// errLong means that a line is too long.
var errLong = errors.New("line too long")

// firstBuffer is the initial size of the buffer, in bytes.
const firstBuffer = 64 << 10

func newLines(conn net.Conn) *lines {
	return &lines{from: conn, most: wire.MaxLine, buffer: make([]byte, firstBuffer)}
}

// next returns the next line without its line end, valid until the next call. A line that is too long is skipped and
// counted, or fails with errLong if strict. Bytes after the last line end are not a line: the writer stopped in the
// middle.
func (l *lines) next() ([]byte, error) {
	for {
		if line, ok := l.cut(); ok {
			return line, nil
		}
		if l.end == len(l.buffer) {
			if l.makeRoom(); l.tooLong && l.strict {
				return nil, errLong
			}
		}
		n, err := l.from.Read(l.buffer[l.end:])
		l.end += n
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// ready reports whether next would return without reading.
func (l *lines) ready() bool { return bytes.IndexByte(l.buffer[l.at+l.seen:l.end], '\n') >= 0 }

// cut takes a line out of the buffer.
func (l *lines) cut() ([]byte, bool) {
	for {
		i := bytes.IndexByte(l.buffer[l.at+l.seen:l.end], '\n')
		if i < 0 {
			l.seen = l.end - l.at
			return nil, false
		}
		line := l.buffer[l.at : l.at+l.seen+i]
		l.at += len(line) + 1
		l.seen = 0
		if !l.tooLong {
			return line, true
		}
		l.tooLong = false
	}
}

// makeRoom frees space at the end of the buffer: it moves unread bytes to the front, enlarges the buffer, or drops a
// line that is too long.
func (l *lines) makeRoom() {
	switch {
	case l.tooLong || l.end-l.at > l.most:
		if !l.tooLong {
			l.tooLong = true
			l.malformed++
		}
		l.at, l.end, l.seen = 0, 0, 0
		return
	case l.at > 0:
		l.end = copy(l.buffer, l.buffer[l.at:l.end])
		l.at = 0
		return
	}
	larger := make([]byte, min(2*len(l.buffer), l.most+firstBuffer))
	copy(larger, l.buffer[:l.end])
	l.buffer = larger
}
