package peer

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Tap keeps the answers that pass between a client and a server, each piece with its time of arrival. Tests compare it with
// other measurements of the same requests. The zero value is ready for Over.
type Tap struct {
	mu      sync.Mutex
	answers []*Answer
}

// Answer is a complete or running answer.
type Answer struct {
	Path  string    // path of the request
	Began time.Time // when the request arrived
	Asked []byte    // body of the request, once it was answered

	mu     sync.Mutex
	pieces []piece
	ended  bool
}

// piece is the data of one read.
type piece struct {
	at   time.Time
	text []byte
}

// Message is one message of a stream: an SSE event without its "data: ", or a line of JSON.
type Message struct {
	At   time.Time // arrival of its last byte
	Text string
}

// Over makes a tap keep the answers that a transport receives.
func (t *Tap) Over(next http.RoundTripper) http.RoundTripper { return over{t, next} }

type over struct {
	tap  *Tap
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o over) RoundTrip(r *http.Request) (*http.Response, error) {
	a := &Answer{Path: r.URL.Path, Began: time.Now()}
	o.tap.mu.Lock()
	o.tap.answers = append(o.tap.answers, a)
	o.tap.mu.Unlock()
	if r.Body != nil {
		r = r.WithContext(r.Context())
		r.Body = &heard{r.Body, a}
	}
	res, err := o.next.RoundTrip(r)
	if err == nil {
		res.Body = &tapped{res.Body, a}
	}
	return res, err
}

// heard is the body of a request.
type heard struct {
	io.ReadCloser
	into *Answer
}

// Read implements io.Reader.
func (b *heard) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.into.Asked = append(b.into.Asked, p[:n]...)
	return n, err
}

// tapped is the body of an answer.
type tapped struct {
	io.ReadCloser
	into *Answer
}

// Read implements io.Reader.
func (b *tapped) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	at := time.Now()
	b.into.mu.Lock()
	defer b.into.mu.Unlock()
	if n > 0 {
		b.into.pieces = append(b.into.pieces, piece{at: at, text: bytes.Clone(p[:n])})
	}
	b.into.ended = b.into.ended || err != nil
	return n, err
}

// Of returns the complete answers to requests for a path, in the order of the requests.
func (t *Tap) Of(path string) (out []*Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.answers {
		if a.Path == path && a.over() {
			out = append(out, a)
		}
	}
	return out
}

func (a *Answer) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// Messages returns the messages of a stream, or the one message of another answer.
func (a *Answer) Messages() (out []Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var line []byte
	for _, p := range a.pieces {
		for part := range bytes.Lines(p.text) {
			if line = append(line, part...); !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			if text := strings.TrimPrefix(string(bytes.TrimSpace(line)), "data: "); text != "" {
				out = append(out, Message{At: p.at, Text: text})
			}
			line = line[:0]
		}
	}
	if text := string(bytes.TrimSpace(line)); text != "" {
		out = append(out, Message{At: a.pieces[len(a.pieces)-1].at, Text: text})
	}
	return out
}
