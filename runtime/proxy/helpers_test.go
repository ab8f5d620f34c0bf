package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a sink that remembers.
type memory struct{ eventtest.Log }

// engine is what was told of the server last.
func (l *memory) engine() (last event.Engine) {
	for _, e := range l.All() {
		if p, ok := e.Data.(*event.Engine); ok {
			last = *p
		}
	}
	return last
}

// model is what was told of the model last.
func (l *memory) model() (name string) {
	for _, e := range l.All() {
		if p, ok := e.Data.(*event.Model); ok {
			name = p.Name
		}
	}
	return name
}

// told is what was told of one request.
type told struct {
	queued  event.Event
	request event.Request
	tokens  []event.Event
	stages  []event.Event
	ended   event.Event
	outcome event.Outcome
}

// generated is the number of tokens in events.
func (r *told) generated() (n int) {
	for _, e := range r.tokens {
		n += int(e.N)
	}
	return n
}

// requests are those that have ended, by their ids.
func (l *memory) requests() (out []*told) {
	byID := map[event.RequestID]*told{}
	for _, e := range l.All() {
		if e.Req == 0 {
			continue
		}
		r := byID[e.Req]
		if r == nil {
			r = new(told)
			byID[e.Req] = r
		}
		switch p := e.Data.(type) {
		case *event.Request:
			r.queued, r.request = e, *p
		case *event.Outcome:
			r.ended, r.outcome = e, *p
			out = append(out, r)
		}
		switch e.Kind {
		case event.KindToken:
			r.tokens = append(r.tokens, e)
		case event.KindStage:
			r.stages = append(r.stages, e)
		}
	}
	slices.SortFunc(out, func(a, b *told) int { return int(a.ended.Req) - int(b.ended.Req) })
	return out
}

// await waits until something is so.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// rig is a client, a proxy and a server.
type rig struct {
	*memory
	sink   event.Sink // of the proxy; nil: memory
	proxy  *Proxy
	server *httptest.Server
	client *http.Client
	clock  runtime.Clock
	tap    *peer.Tap // keeps what the server answers; nil: nobody does
	stop   func()    // ends the proxy
}

// behind puts a proxy in front of a handler for the length of a test.
func behind(t testing.TB, h http.Handler, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{memory: new(memory), server: httptest.NewUnstartedServer(h), clock: runtime.NewClock()}
	r.server.Config.ErrorLog = (&Proxy{}).newPass().ErrorLog // quiet
	r.server.Start()
	r.front(t, r.server.URL, change...)
	t.Cleanup(func() { // before the proxy ends, which may wait for handlers
		r.server.CloseClientConnections()
		r.stop()
		r.server.Close()
	})
	return r
}

// front puts a proxy in front of an address.
func (r *rig) front(t testing.TB, to string, change ...func(*Options)) {
	t.Helper()
	opt := Options{To: to, Listen: "127.0.0.1:0", Clock: r.clock}
	for _, c := range change {
		c(&opt)
	}
	p, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	r.proxy = p
	if r.tap != nil {
		p.pass.Transport = r.tap.Over(p.pass.Transport)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024}
	r.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	sink := r.sink
	if sink == nil {
		sink = r.memory
	}
	go func() { ended <- p.Run(ctx, sink) }()
	r.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the proxy ended with %v", err)
		}
	})
	t.Cleanup(r.stop)
}

// post sends a request through the proxy.
func (r *rig) post(t testing.TB, path, body string) *http.Response {
	t.Helper()
	res, err := r.client.Post(r.proxy.Address()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// one sends a request through the proxy, and returns the answer and what was told of the request.
func (r *rig) one(t testing.TB, path, body string) (*http.Response, string, *told) {
	t.Helper()
	before := len(r.requests())
	res := r.post(t, path, body)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "a request ends", func() bool { return len(r.requests()) > before })
	return res, string(text), r.requests()[before]
}

// script is a server that sends a chunk whenever it is told to.
type script struct {
	kind   string // content type
	chunks []string
	next   chan struct{}
	clock  *runtime.Clock
	sent   []event.Time // when each chunk was about to be written
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if s.kind != "" {
		w.Header().Set("Content-Type", s.kind)
	} else {
		w.Header()["Content-Type"] = nil
	}
	w.WriteHeader(http.StatusOK)
	flush(w)
	for _, c := range s.chunks {
		select {
		case <-s.next:
		case <-r.Context().Done():
			return
		}
		s.sent = append(s.sent, s.clock.Now())
		_, _ = io.WriteString(w, c)
		flush(w)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// play runs a script through the proxy. The result says how many tokens were told of each chunk: those whose stamps lie between the moment
// when it was sent and the moment when the client had it.
func play(t *testing.T, path, body, kind string, chunks []string) (perChunk []int, r *rig, about *told) {
	t.Helper()
	s := &script{kind: kind, chunks: chunks, next: make(chan struct{})}
	r = behind(t, s)
	s.clock = &r.clock
	began := r.clock.Now()
	res := r.post(t, path, body)
	defer res.Body.Close()
	var got []event.Time
	for _, c := range chunks {
		s.next <- struct{}{}
		piece := make([]byte, len(c))
		if _, err := io.ReadFull(res.Body, piece); err != nil || string(piece) != c {
			t.Fatalf("got %q, %v; want %q", piece, err, c)
		}
		got = append(got, r.clock.Now())
	}
	if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
		t.Fatalf("%q is left, %v", rest, err)
	}
	await(t, "the request ends", func() bool { return len(r.requests()) == 1 })
	about = r.requests()[0]
	if q := about.queued.At; q < began || q > s.sent[0] {
		t.Errorf("enqueued at %d, not between %d, when the client began, and %d, when the server answered", q, began, s.sent[0])
	}
	perChunk = make([]int, len(chunks))
	for _, e := range about.tokens {
		i := slices.IndexFunc(s.sent, func(at event.Time) bool { return at > e.At }) - 1
		if i == -2 {
			i = len(chunks) - 1
		}
		if i < 0 || e.At > got[i] {
			t.Fatalf("a token is stamped %d: chunks were sent at %v and had come at %v", e.At, s.sent, got)
		}
		perChunk[i] += int(e.N)
	}
	return perChunk, r, about
}

// events cuts a stream into its events.
func events(stream string) (out []string) {
	for _, e := range strings.SplitAfter(stream, "\n\n") {
		if strings.TrimSpace(e) != "" {
			out = append(out, e)
		}
	}
	return out
}

// rows cuts a stream into its lines.
func rows(stream string) (out []string) {
	for line := range bytes.Lines([]byte(stream)) {
		out = append(out, string(line))
	}
	return out
}
