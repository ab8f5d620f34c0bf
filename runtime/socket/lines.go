package socket

import (
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/llmtop/llmtop/profiler/event/wire"
)

// lines cuts what a connection delivers into lines. A timeout loses nothing: the next call goes on where the last one stopped.
type lines struct {
	from    io.Reader
	most    int  // bytes of a line
	strict  bool // longer lines are an error
	buffer  []byte
	at, end int  // of what has been read and not handed out
	seen    int  // bytes after at that hold no line end
	over    bool // the line is too long, its rest is passed over
	garbage uint64
}

// errLong is the error of a line that is too long.
var errLong = errors.New("a line that is too long")

// firstBuffer is the size of the buffer while lines are short.
const firstBuffer = 64 << 10

func newLines(conn net.Conn) *lines {
	return &lines{from: conn, most: wire.MaxLine, buffer: make([]byte, firstBuffer)}
}

// next is the next line without its end, valid until the next call. Lines that are too long are passed over and counted, or errLong. What
// follows the last line end is no line: the writer has died in the middle of it.
func (l *lines) next() ([]byte, error) {
	for {
		if line, ok := l.cut(); ok {
			return line, nil
		}
		if l.end == len(l.buffer) {
			if l.makeRoom(); l.over && l.strict {
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

// ready reports whether next has a line without waiting.
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
		if !l.over {
			return line, true
		}
		l.over = false
	}
}

// makeRoom makes room behind what has been read: it moves it to the front, enlarges the buffer, or lets go of a line that is too long.
func (l *lines) makeRoom() {
	switch {
	case l.over || l.end-l.at > l.most:
		if !l.over {
			l.over = true
			l.garbage++
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
