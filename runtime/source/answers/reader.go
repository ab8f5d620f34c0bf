// Package answers reads what clients ask inference servers over HTTP, and what these answer, in the interfaces of OpenAI,
// Anthropic, Ollama, llama.cpp, SGLang and TGI. A Request reads the body of a request. A Reader cuts an answer into
// Messages, each with the time at which its last byte was read, and an Answer counts their tokens.
package answers

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
)

// MaxMessage limits one message of a stream, and the whole answer if it is not a stream, in bytes. The longest regular
// message, the token ids of a full context at the end of an Ollama answer, has a few MB.
const MaxMessage = 8 << 20

var (
	// ErrLong means that a message is longer than MaxMessage. The messages after it can be read.
	ErrLong = errors.New("a message of more than 8 MiB")
	// ErrJSON means that a message is not JSON, or the whole answer no object: Message.Wrong has the cause. The messages after
	// it can be read.
	ErrJSON = errors.New("a message is not a JSON object")
	// ErrMore means that nothing more of the answer has come yet, as the reader that it is read from says. Reading goes on
	// where it was.
	ErrMore = errors.New("the answer goes on")
	// ErrLost means that bytes of the answer are missing, as the reader that it is read from says. Of a stream, the messages
	// after them can be read.
	ErrLost = errors.New("part of the answer was not received")
)

// form is how an answer is divided into messages.
type form uint8

const (
	sentEvents form = iota // server-sent events
	jsonLines              // one JSON value in each non-empty line
	document               // a single JSON value
)

// Reader cuts an answer into messages.
type Reader struct {
	// Texts keeps the generated text and the token ids in messages; otherwise they are only counted.
	Texts bool

	dialect *Dialect
	form    form
	lines   lines
	event   Event
	at      func() event.Time
	all     bytes.Buffer // of the document so far
	ended   bool         // the document was read
	within  bool         // an event is in progress
	rest    bool         // it may be the rest of another
	same    pattern      // of the messages so far
	torn    bool         // the next line may be the rest of a message of which a part was lost
}

// NewStream returns a reader of an answer that is a stream in the form of its dialect. at returns the time of the last read
// of from.
func NewStream(d *Dialect, from io.Reader, at func() event.Time) *Reader {
	place, _ := from.(inPlace)
	r := &Reader{dialect: d, lines: lines{from: from, place: place}, event: Event{Max: MaxMessage}, at: at}
	if d.Lines {
		r.form = jsonLines
	}
	return r
}

var errKind = errors.New("neither JSON nor a stream of events")

// NewReader returns a reader of an answer with a header: by its content type, or if that is missing by the dialect. It
// returns io.EOF if the status says all.
func NewReader(d *Dialect, status int, header http.Header, from io.Reader, at func() event.Time) (*Reader, error) {
	from, err := decoded(from, header)
	if err != nil {
		return nil, err
	}
	r := NewStream(d, from, at)
	switch kind := contentType(header); {
	case kind == "text/event-stream":
		r.form = sentEvents
	case kind == "application/x-ndjson", kind == "application/jsonl", kind == "" && d.Lines:
		r.form = jsonLines
	case kind == "application/json", kind == "application/problem+json":
		r.form = document
	case kind == "" && status == http.StatusOK:
	case status != http.StatusOK:
		return nil, io.EOF
	default:
		return nil, errKind
	}
	return r, nil
}

// contentType returns the content type without its parameters; "": it is missing or malformed.
func contentType(header http.Header) string {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// IsStream reports whether an answer with a header is a stream of messages.
func IsStream(header http.Header) bool {
	kind := contentType(header)
	return kind == "text/event-stream" || kind == "application/x-ndjson"
}

// Streams reports whether the answer is a stream of messages.
func (r *Reader) Streams() bool { return r.form != document }

// Next returns the next message, valid until the next call. Errors: io.EOF at the end, ErrLong, ErrLost, ErrMore, ErrJSON with
// the message, and those of reading.
func (r *Reader) Next() (*Message, error) {
	v, err := r.next()
	if err != nil {
		return nil, err
	}
	if m := r.same.read(v.bytes, r.Texts); m != nil && !v.failed {
		m.At, m.Torn, m.Rest, m.texts, m.Parts[0].At = v.at, v.torn, v.rest, r.Texts, v.at
		return m, nil
	}
	r.same.last = false
	m := &Message{At: v.at, Torn: v.torn, Rest: v.rest, whole: !r.Streams(), texts: r.Texts}
	if string(v.bytes) == "[DONE]" {
		m.Done = true
		return m, nil
	}
	if bad := r.dialect.read(m, v.bytes); bad != nil {
		m.Wrong, err = bad, ErrJSON
	}
	if v.failed && !m.Failed {
		m.Failed, m.Failure = true, bytes.Clone(v.bytes)
	}
	for i := range m.Parts {
		m.Parts[i].At = m.At
		m.Named = m.Named || m.Parts[i].Tokens > 0
	}
	if r.Streams() && len(m.Parts) == 1 {
		r.same.learn(v.bytes, r.dialect)
	}
	return m, err
}

// value is one JSON value of an answer.
type value struct {
	bytes  []byte // valid until the next call of next
	failed bool   // the server marks it as an error
	torn   bool   // the stream stopped inside it or right after it
	rest   bool   // it may be the rest of another, of which a part is missing
	at     event.Time
}

// next returns the next value. Errors: those of lines, and ErrLong.
func (r *Reader) next() (value, error) {
	switch r.form {
	case sentEvents:
		return r.nextEvent()
	case jsonLines:
		for {
			line, err := r.lines.next()
			line = bytes.TrimSpace(line)
			rest := r.torn
			switch {
			case err == ErrLost:
				r.torn = true
			case err == nil && r.torn && !bytes.HasPrefix(line, []byte{'{'}):
				r.torn = false
				continue
			case err == nil && len(line) == 0:
				continue
			case err == nil:
				r.torn = false
			}
			return value{bytes: line, torn: r.lines.torn, rest: rest, at: r.at()}, err
		}
	}
	if r.ended {
		return value{}, io.EOF
	}
	_, err := r.all.ReadFrom(io.LimitReader(r.lines.from, int64(MaxMessage+1-r.all.Len())))
	switch r.ended = err != ErrMore; {
	case err == nil && r.all.Len() > MaxMessage:
		err = ErrLong
	case err == ErrLost:
		return value{}, errHole
	}
	return value{bytes: r.all.Bytes(), at: r.at()}, err
}

// nextEvent returns the next event with data.
func (r *Reader) nextEvent() (value, error) {
	if !r.within {
		r.event.Begin()
		r.rest = r.torn
	}
	v, err := r.readEvent()
	r.within = err == ErrMore
	return v, err
}

// readEvent reads on to the end of an event with data.
func (r *Reader) readEvent() (value, error) {
	e := &r.event
	for {
		if !r.torn && !e.Some && !e.Over && !e.Failed {
			if data, ok := r.lines.event(); ok {
				return value{bytes: data, rest: r.rest, at: r.at()}, nil
			}
		}
		line, err := r.lines.next()
		ended := false
		switch {
		case err == ErrLong:
			e.Over = true
			continue
		case err == ErrLost:
			r.torn = true
			return value{}, ErrLost
		case err == nil && r.torn && !bytes.HasPrefix(line, []byte("data:")) && !bytes.HasPrefix(line, []byte("event:")):
			r.torn = len(line) > 0 // until an empty line, an event of which a part was lost
			continue
		case err == ErrMore:
			return value{}, err
		case err != nil && e.Over, err == io.EOF && e.Some: // the last event needs no blank line after it
			ended = true
		case err != nil:
			return value{}, err
		default:
			r.torn = false
			ended = e.Line(line)
		}
		switch {
		case !ended:
		case e.Over:
			return value{}, ErrLong
		default:
			return value{e.Data, e.Failed, err == io.EOF, r.rest, r.at()}, nil
		}
	}
}

// errHole is ErrLost where nothing that follows can be read.
var errHole = errors.New(ErrLost.Error())

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
	return Limited(r, maxDecoded, errUnfolds), nil
}

// limited is a reader with a limit on its length.
type limited struct {
	from io.Reader
	left int // bytes
	over error
}

// Limited returns a reader of from that fails with over after most bytes.
func Limited(from io.Reader, most int, over error) io.Reader { return &limited{from, most, over} }

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	switch l.left -= n; {
	case l.left < 0:
		return n, l.over
	case errors.Is(err, ErrLost): // what follows cannot be decompressed
		err = errHole
	}
	return n, err
}
