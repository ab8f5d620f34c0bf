package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/sse"
)

// maxMessage bounds one message of an answer, and the whole answer where it does not stream, in bytes. The longest that servers send on
// purpose, the token ids of a whole context at the end of an Ollama answer, is some MB.
const maxMessage = 4 << 20

// errLong is the error of a longer one. What comes after it can be read.
var errLong = errors.New("a message of more than 4 MiB")

// lines splits an answer into lines, each with the moment at which its last byte was read.
type lines struct {
	from io.Reader
	at   func() event.Time // of the last read of from

	buf   []byte
	begin int // of what was not handed out yet
	seen  int // up to where there is no line end
	over  bool
	torn  bool // the line handed out last had no end
	err   error
}

// reads is how much is read at once at first. Most answers come in pieces of some hundred bytes.
const reads = 2 << 10

func newLines(from io.Reader, at func() event.Time) *lines {
	return &lines{from: from, at: at, buf: make([]byte, 0, reads)}
}

// next is the next line without its end, valid until the next call. What stands after the last line end comes as a line of its own. Errors
// are errLong, for a line that was passed over, and those of reading, io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:], '\n'); i >= 0 {
			line := l.buf[l.begin : l.seen+i]
			l.seen += i + 1
			l.begin = l.seen
			if l.over {
				l.over = false
				return nil, errLong
			}
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		l.seen = len(l.buf)
		switch {
		case l.err != nil && l.over:
			l.over = false
			return nil, errLong
		case l.err == io.EOF && l.begin < len(l.buf):
			line := l.buf[l.begin:]
			l.begin, l.torn = len(l.buf), true
			return line, nil
		case l.err != nil:
			return nil, l.err
		case len(l.buf)-l.begin > maxMessage:
			l.over = true
		}
		if l.over {
			l.begin = l.seen
		}
		l.fill()
	}
}

// fill reads once, after it has moved what is left to the front.
func (l *lines) fill() {
	if l.begin > 0 {
		n := copy(l.buf, l.buf[l.begin:])
		l.buf, l.seen, l.begin = l.buf[:n], l.seen-l.begin, 0
	}
	if len(l.buf) == cap(l.buf) {
		l.buf = append(make([]byte, 0, 2*cap(l.buf)), l.buf...)
	}
	n, err := l.from.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
}

// message is one JSON value of an answer.
type message struct {
	value  []byte // valid until the next message is read
	failed bool   // the server calls it an error
	torn   bool   // the answer stopped in it, or else right behind it
	at     event.Time
}

// sentEvents reads server-sent events.
type sentEvents struct {
	lines *lines
	event sse.Event
}

func newSentEvents(l *lines) *sentEvents {
	return &sentEvents{lines: l, event: sse.Event{Max: maxMessage}}
}

// next is the next event that holds data. Errors are those of lines.
func (s *sentEvents) next() (message, error) {
	e := &s.event
	e.Begin()
	for {
		line, err := s.lines.next()
		switch {
		case err == errLong:
			e.Over = true
			continue
		case err == io.EOF && e.Over:
			return message{}, errLong
		case err == io.EOF && e.Some: // the last event need not be ended
			return message{e.Data, e.Failed, true, s.lines.at()}, nil
		case err != nil:
			return message{}, err
		}
		switch {
		case !e.Line(line):
		case e.Over:
			return message{}, errLong
		default:
			return message{e.Data, e.Failed, false, s.lines.at()}, nil
		}
	}
}

// ndjson reads a JSON value on every line that is not empty.
type ndjson struct{ lines *lines }

func (n ndjson) next() (message, error) {
	for {
		line, err := n.lines.next()
		if line = bytes.TrimSpace(line); err != nil || len(line) > 0 {
			return message{value: line, torn: n.lines.torn, at: n.lines.at()}, err
		}
	}
}

// document reads one JSON value and what follows it.
type document struct {
	from io.Reader
	at   func() event.Time
	done bool
}

func (d *document) next() (message, error) {
	if d.done {
		return message{}, io.EOF
	}
	d.done = true
	value, err := io.ReadAll(io.LimitReader(d.from, maxMessage+1))
	switch {
	case err != nil:
		return message{}, err
	case len(value) > maxMessage:
		return message{}, errLong
	}
	return message{value: value, at: d.at()}, nil
}

// maxDecoded bounds what one compressed answer may unfold to, in bytes. Nothing of it is kept; this is about the time that it takes.
const maxDecoded = 1 << 30

var (
	errEncoding = errors.New("it is compressed in a way that is not understood")
	errUnfolds  = errors.New("it unfolds to more than 1 GiB")
)

// decoded is what the bytes of an answer stand for, given how they are compressed. Each read of the result that finds bytes has read no
// more of from than it had to.
func decoded(from io.Reader, header http.Header) (io.Reader, error) {
	encodings := header.Values("Content-Encoding")
	if len(encodings) > 1 {
		return nil, errEncoding
	}
	if len(encodings) == 0 {
		return from, nil
	}
	var (
		r   io.Reader
		err error
	)
	switch strings.ToLower(strings.TrimSpace(encodings[0])) {
	case "", "identity":
		return from, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(from)
	case "deflate":
		r, err = zlib.NewReader(from)
	case "zstd":
		r, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	default:
		err = errEncoding
	}
	if err != nil {
		return nil, err
	}
	return &unfolding{r, maxDecoded}, nil
}

// unfolding is a reader with a bound on its length.
type unfolding struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (u *unfolding) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if u.left -= n; u.left < 0 {
		return 0, errUnfolds
	}
	return n, err
}
