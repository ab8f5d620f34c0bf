package socket

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/llmtop/llmtop/profiler/event/wire"
)

// lines splits a connection's bytes into lines. A read timeout loses nothing: the next call continues.
type lines struct {
	from      *bufio.Reader
	most      int    // maximum bytes of a line that is longer than the buffer of from
	strict    bool   // a longer line is an error
	begun     []byte // a line whose end was not read yet
	tooLong   bool   // the line is too long; its rest is skipped
	malformed uint64 // lines that were too long
}

// errLong means that a line is too long.
var errLong = errors.New("line too long")

func newLines(from io.Reader) *lines {
	return &lines{from: bufio.NewReaderSize(from, 64<<10), most: wire.MaxLine}
}

// next returns the next line without its line end, valid until the next call. A line that is too long is skipped and
// counted, or fails with errLong if strict. Bytes after the last line end are not a line: the writer stopped in the
// middle.
func (l *lines) next() ([]byte, error) {
	for {
		part, err := l.from.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		long := full && len(l.begun)+len(part) > l.most
		switch {
		case l.tooLong:
			l.tooLong = err != nil
		case err == nil && len(l.begun) == 0:
			return part[:len(part)-1], nil
		case long && l.strict:
			return nil, errLong
		case long:
			l.begun, l.tooLong = l.begun[:0], true
			l.malformed++
		default:
			if len(l.begun)+len(part) > cap(l.begun) {
				l.begun = slices.Grow(l.begun, max(len(l.begun), len(part))) // append would make it larger in small steps
			}
			if l.begun = append(l.begun, part...); err == nil {
				line := l.begun[:len(l.begun)-1]
				l.begun = l.begun[:0]
				return line, nil
			}
		}
		if err != nil && !full {
			return nil, err
		}
	}
}

// ready reports whether next would return without reading.
func (l *lines) ready() bool {
	rest, _ := l.from.Peek(l.from.Buffered())
	return bytes.IndexByte(rest, '\n') >= 0
}
