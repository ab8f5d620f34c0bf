package peer

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Tap forwards between a client and a server and keeps the answers, each piece with its time of arrival. Tests compare
// it with other measurements of the same requests.
type Tap struct {
	// URL is its address, without a trailing slash.
	URL string

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

// NewTap starts a tap in front of a server, for the duration of a test.
func NewTap(tb testing.TB, to string) *Tap {
	tb.Helper()
	target, err := url.Parse(to)
	if err != nil {
		tb.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true} // no request uses a connection that is being closed
	t := new(Tap)
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // at once
		Transport:     t.Over(transport),
		ErrorLog:      log.New(io.Discard, "", 0), // clients that disconnect early are part of tests
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // an answer may start before the request was read
		pass.ServeHTTP(w, r)
	}))
	tb.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	t.URL = server.URL
	return t
}

// Over makes a tap keep the answers that a transport receives, without a hop of its own. Use it with the zero Tap.
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
