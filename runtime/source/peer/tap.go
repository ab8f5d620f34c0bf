package peer

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Tap keeps the answers that pass between a client and a server, each piece with its time of arrival. Tests compare it with
// other measurements of the same requests. The zero value is ready for Over.
type Tap struct {
	mu      sync.Mutex // guards the answers
	answers []*Answer
}

// Answer is a complete or running answer.
type Answer struct {
	Path  string    // path of the request
	Began time.Time // when the request arrived
	Asked []byte    // body of the request, once it was answered

	tap    *Tap
	pieces []Message // the data of each read
	ended  bool
}

// Message is one message of a stream: an SSE event without its "data: ", or a line of JSON.
type Message struct {
	At   time.Time // arrival of its last byte
	Text string
}

// heard is a body whose reads are passed on.
type heard struct {
	io.ReadCloser
	hear func(read []byte, err error)
}

// Read implements io.Reader.
func (h heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.hear(p[:n], err)
	return n, err
}

// transport is an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Over makes a tap keep the answers that a transport receives.
func (t *Tap) Over(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		a := &Answer{Path: r.URL.Path, Began: time.Now(), tap: t}
		t.mu.Lock()
		t.answers = append(t.answers, a)
		t.mu.Unlock()
		if r.Body != nil {
			r = r.WithContext(r.Context())
			r.Body = heard{r.Body, func(read []byte, _ error) { a.Asked = append(a.Asked, read...) }}
		}
		res, err := next.RoundTrip(r)
		if err == nil {
			res.Body = heard{res.Body, a.hear}
		}
		return res, err
	})
}

// hear adds what a read returned.
func (a *Answer) hear(read []byte, err error) {
	at := time.Now()
	a.tap.mu.Lock()
	defer a.tap.mu.Unlock()
	a.pieces = append(a.pieces, Message{at, string(read)})
	a.ended = a.ended || err != nil
}

// Of returns the complete answers to requests for a path, in the order of the requests.
func (t *Tap) Of(path string) []*Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.answers), func(a *Answer) bool { return a.Path != path || !a.ended })
}

// Messages returns the messages of a stream, or the one message of another answer.
func (a *Answer) Messages() (out []Message) {
	a.tap.mu.Lock()
	defer a.tap.mu.Unlock()
	var line []byte
	add := func(at time.Time) {
		if text := bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data: ")); len(text) > 0 {
			out = append(out, Message{at, string(text)})
		}
		line = line[:0]
	}
	for i, p := range a.pieces {
		for part := range bytes.Lines([]byte(p.Text)) {
			if line = append(line, part...); bytes.HasSuffix(line, []byte("\n")) {
				add(p.At)
			}
		}
		if i == len(a.pieces)-1 {
			add(p.At)
		}
	}
	return out
}
