package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener and a dialer of connections inside this process, for virtual time.
type pipes struct {
	come   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) connect(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.come <- there
	return here, nil
}

// step is one write of a scripted answer, after a wait.
type step struct {
	wait time.Duration
	text string
}

// play writes steps and flushes each.
func play(w http.ResponseWriter, steps ...step) {
	for _, s := range steps {
		time.Sleep(s.wait)
		_, _ = io.WriteString(w, s.text)
		w.(http.Flusher).Flush()
	}
}

// data returns a server-sent event.
func data(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) + "\n\n" }

const ms100 = 100 * time.Millisecond

// llama is a llama.cpp server's list of models.
const llama = `{"data":[{"id":"tiny","owned_by":"llamacpp","meta":{"n_params":11,"size":12,"n_ctx_train":64,"n_embd":4,"n_vocab":100}}]}`

// session is a client of a server made of handlers, in virtual time.
type session struct {
	*Client
	sink   *eventtest.Log
	closed func()
}

// begin starts a session in a bubble of synctest. models is the answer to the list of models; mux has the other
// handlers.
func begin(t *testing.T, models string, opt Options, handlers map[string]http.HandlerFunc) *session {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, models) })
	for pattern, h := range handlers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // otherwise the server does not notice a disconnect
			r.Body = io.NopCloser(bytes.NewReader(body))
			h(w, r)
		})
	}
	listener := &pipes{come: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	if opt.Address == "" {
		opt.Address = "http://server:8080"
	}
	opt.Clock, opt.connect = engine.NewClock(), listener.connect
	c, err := Dial(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Client: c, sink: &eventtest.Log{}}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- c.Run(ctx, s.sink) }()
	s.closed = func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		_ = server.Close()
		synctest.Wait()
	}
	return s
}

// do runs a request to its end.
func (s *session) do(t *testing.T, r engine.Request) engine.Result {
	t.Helper()
	h, err := s.Submit(r)
	if err != nil {
		t.Fatal(err)
	}
	return h.Result()
}

// tokens returns the tokens by arrival time in ms after the request was sent: "250:1 300:2".
func (s *session) tokens() string {
	var sent event.Time
	var out []string
	for _, e := range s.sink.All() {
		switch {
		case e.Kind == event.KindRequest && e.State == event.StateQueued:
			sent = e.At
		case e.Kind == event.KindToken:
			out = append(out, fmt.Sprintf("%d:%d", (e.At-sent)/event.Time(time.Millisecond), e.N))
		}
	}
	return strings.Join(out, " ")
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }
