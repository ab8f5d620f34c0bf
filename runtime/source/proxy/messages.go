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
	"github.com/llmtop/llmtop/runtime/source/sse"
)

// maxMessage limits one message of a stream, and the whole answer if it is not a stream, in bytes. The longest regular
// message, the token ids of a full context at the end of an Ollama answer, has a few MB.
const maxMessage = 4 << 20

// errLong means that a message is longer than maxMessage. The messages after it can be read.
var errLong = errors.New("a message of more than 4 MiB")

// lines splits an answer into lines and stamps each with the time at which its last byte was read.
type lines struct {
	from io.Reader
	at   func() event.Time // time of the last read of from

	buf     []byte
	begin   int  // start of the line in progress
	seen    int  // no line end before this offset
	tooLong bool // the line in progress is too long
	torn    bool // the last line returned had no line end
	err     error
}

// reads is the initial buffer size, in bytes. Most answers come in pieces of a few hundred bytes.
const reads = 2 << 10

func newLines(from io.Reader, at func() event.Time) *lines {
	return &lines{from: from, at: at, buf: make([]byte, 0, reads)}
}

// next returns the next line without its line end, valid until the next call. Text after the last line end is a line of
// its own. Errors: errLong for a line that was skipped, io.EOF at the end, errors of from.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:], '\n'); i >= 0 {
			line := l.buf[l.begin : l.seen+i]
			l.seen += i + 1
			l.begin = l.seen
			if l.tooLong {
				l.tooLong = false
				return nil, errLong
			}
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		l.seen = len(l.buf)
		switch {
		case l.err != nil && l.tooLong:
			l.tooLong = false
			return nil, errLong
		case l.err == io.EOF && l.begin < len(l.buf):
			line := l.buf[l.begin:]
			l.begin, l.torn = len(l.buf), true
			return line, nil
		case l.err != nil:
			return nil, l.err
		case len(l.buf)-l.begin > maxMessage:
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
		l.buf = append(make([]byte, 0, 2*cap(l.buf)), l.buf...)
	}
	n, err := l.from.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
}

// message is one JSON value of an answer.
type message struct {
	value  []byte // valid until the next call of next
	failed bool   // the server marks it as an error
	torn   bool   // the stream stopped inside it or right after it
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

// next returns the next event with data. Its errors are those of lines.
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
		case err == io.EOF && e.Some: // the last event needs no blank line after it
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

// ndjson reads one JSON value from each non-empty line.
type ndjson struct{ lines *lines }

func (n ndjson) next() (message, error) {
	for {
		line, err := n.lines.next()
		if line = bytes.TrimSpace(line); err != nil || len(line) > 0 {
			return message{value: line, torn: n.lines.torn, at: n.lines.at()}, err
		}
	}
}

// document reads an answer that is a single JSON value.
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

// maxDecoded limits the decompressed size of one answer, in bytes. It limits CPU time: the data is not kept.
const maxDecoded = 1 << 30

var (
	errEncoding = errors.New("unsupported compression")
	errUnfolds  = errors.New("more than 1 GiB after decompression")
)

// decoded returns a reader of the decompressed answer. A read that returns bytes consumes no more of from than it
// needs.
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

// unfolding is a reader with a limit on its length.
type unfolding struct {
	from io.Reader
	left int // bytes
}

// Read implements io.Reader.
func (u *unfolding) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if u.left -= n; u.left < 0 {
		return 0, errUnfolds
	}
	return n, err
}
