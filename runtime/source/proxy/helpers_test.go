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

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a sink that keeps all events.
type memory struct{ eventtest.Log }

// engine returns the last engine event.
func (l *memory) engine() (last event.EngineInfo) {
	for _, e := range l.All() {
		if p, ok := e.Data.(*event.EngineInfo); ok {
			last = *p
		}
	}
	return last
}

// model returns the last model name.
func (l *memory) model() (name string) {
	for _, e := range l.All() {
		if p, ok := e.Data.(*event.Model); ok {
			name = p.Name
		}
	}
	return name
}

// loggedRequest holds the events of one request.
type loggedRequest struct {
	queued  event.Event
	request event.Request
	tokens  []event.Event
	stages  []event.Event
	ended   event.Event
	outcome event.Outcome
}

// generated returns the number of tokens in the events.
func (r *loggedRequest) generated() (n int) {
	for _, e := range r.tokens {
		n += int(e.N)
	}
	return n
}

// requests returns the completed requests in the order of their ids.
func (l *memory) requests() (out []*loggedRequest) {
	byID := map[event.RequestID]*loggedRequest{}
	for _, e := range l.All() {
		if e.Req == 0 {
			continue
		}
		r := byID[e.Req]
		if r == nil {
			r = new(loggedRequest)
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
	slices.SortFunc(out, func(a, b *loggedRequest) int { return int(a.ended.Req) - int(b.ended.Req) })
	return out
}

// rig is a client, a proxy and a server.
type rig struct {
	*memory
	sink   event.Sink // of the proxy; nil: memory
	proxy  *Proxy
	server *httptest.Server
	client *http.Client
	clock  engine.Clock
	tap    *peer.Tap // records what the server answers; nil: off
	stop   func()    // stops the proxy
}

// behind starts a proxy in front of a handler for the duration of a test.
func behind(t testing.TB, h http.Handler, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{memory: new(memory), server: httptest.NewUnstartedServer(h), clock: engine.NewClock()}
	r.server.Config.ErrorLog = (&Proxy{}).newPass().ErrorLog // quiet
	r.server.Start()
	r.front(t, r.server.URL, change...)
	t.Cleanup(func() { // before the proxy stops, which may wait for handlers
		r.server.CloseClientConnections()
		r.stop()
		r.server.Close()
	})
	return r
}

// front starts a proxy in front of an address.
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

// one sends a request through the proxy and returns the answer and the request's events.
func (r *rig) one(t testing.TB, path, body string) (*http.Response, string, *loggedRequest) {
	t.Helper()
	before := len(r.requests())
	res := r.post(t, path, body)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "a request ends", func() bool { return len(r.requests()) > before })
	return res, string(text), r.requests()[before]
}

// script is a server that sends one chunk per signal.
type script struct {
	kind   string // content type
	chunks []string
	next   chan struct{}
	clock  *engine.Clock
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

// play runs a script through the proxy. perChunk is the number of tokens per chunk: those stamped between the sending
// of the chunk and its arrival at the client.
func play(t *testing.T, path, body, kind string, chunks []string) (perChunk []int, r *rig, logged *loggedRequest) {
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
	eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 1 })
	logged = r.requests()[0]
	if q := logged.queued.At; q < began || q > s.sent[0] {
		t.Errorf("enqueued at %d, not between %d, when the client sent it, and %d, when the server answered", q, began, s.sent[0])
	}
	perChunk = make([]int, len(chunks))
	for _, e := range logged.tokens {
		i := slices.IndexFunc(s.sent, func(at event.Time) bool { return at > e.At }) - 1
		if i == -2 {
			i = len(chunks) - 1
		}
		if i < 0 || e.At > got[i] {
			t.Fatalf("a token is stamped %d: chunks were sent at %v and had come at %v", e.At, s.sent, got)
		}
		perChunk[i] += int(e.N)
	}
	return perChunk, r, logged
}

// events splits a stream into its events.
func events(stream string) (out []string) {
	for _, e := range strings.SplitAfter(stream, "\n\n") {
		if strings.TrimSpace(e) != "" {
			out = append(out, e)
		}
	}
	return out
}

// rows splits a stream into its lines.
func rows(stream string) (out []string) {
	for line := range bytes.Lines([]byte(stream)) {
		out = append(out, string(line))
	}
	return out
}
