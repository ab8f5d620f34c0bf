package socket

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

// shared is an engine that other processes may use. Prompts control requests: "early" ends before the answer to Submit,
// "late" after it, "fail" fails, "hang" runs until it is cancelled, "full" is refused.
type shared struct {
	caps   event.Caps
	mu     sync.Mutex
	server *Server
	last   event.RequestID
	clock  engine.Clock
}

func (h *shared) Controls() event.Caps { return h.caps }

func (h *shared) emit(e event.Event) {
	e.At, e.Layer = h.clock.Now(), -1
	h.server.Emit(e)
}

func (h *shared) end(id event.RequestID, state event.State, reason string) {
	h.emit(event.Event{Kind: event.KindToken, Req: id, ID: 7, N: 1})
	h.emit(event.Event{Kind: event.KindRequest, Req: id, State: state, Data: &event.Outcome{Reason: reason, Prompt: 3, Generated: 1}})
}

func (h *shared) generate(g *wire.Generation) (event.RequestID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.Prompt == "full" {
		return 0, engine.ErrQueueFull
	}
	h.last++
	id := h.last
	h.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Label: g.Label}})
	switch g.Prompt {
	case "early":
		h.end(id, event.StateFinished, "length")
		time.Sleep(20 * time.Millisecond)
	case "late":
		time.AfterFunc(20*time.Millisecond, func() { h.end(id, event.StateFinished, "length") })
	case "fail":
		h.end(id, event.StateFailed, "out of memory")
	}
	return id, nil
}

func (h *shared) Control(c *wire.Control) (event.RequestID, error) {
	switch c.Type {
	case wire.Generate:
		return h.generate(&c.Generation)
	case wire.Cancel:
		h.end(c.Req, event.StateCancelled, "cancelled")
	}
	return 0, nil
}

// running returns a runner of such an engine for the duration of the test.
func running(t *testing.T, caps event.Caps) (*Runner, *shared, func()) {
	t.Helper()
	clock := engine.NewClock()
	h := &shared{caps: caps, clock: clock}
	at := "unix:" + filepath.Join(t.TempDir(), "e.sock")
	var err error
	h.server, err = Listen(at, Options{
		Clock: clock, Controller: h, Engine: event.EngineInfo{Name: "test", Caps: event.CapTokens, State: event.EngineReady},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewRunner(at, "", clock)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- e.Run(ctx, &eventtest.Log{}) }()
	var once sync.Once
	end := func() {
		once.Do(func() {
			stop()
			if err := <-ran; err != nil {
				t.Error(err)
			}
			_ = h.server.Close()
		})
	}
	t.Cleanup(end)
	return e, h, end
}

func ready(t *testing.T, e *Runner) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	if err := e.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestRunner(t *testing.T) {
	e, _, _ := running(t, event.CapPrompt|event.CapCancel)
	ready(t, e)
	for prompt, want := range map[string]event.State{"early": event.StateFinished, "late": event.StateFinished, "fail": event.StateFailed} {
		h, err := e.Submit(engine.Request{Text: prompt})
		if err != nil {
			t.Fatal(err)
		}
		got := h.Result()
		if got.State != want || got.Generated != 1 || got.Prompt != 3 || (got.Err != nil) != (want == event.StateFailed) {
			t.Errorf("%s: %+v", prompt, got)
		}
	}
	if _, err := e.Submit(engine.Request{Text: "full"}); !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("a full queue: %v", err)
	}
	if _, err := e.Submit(engine.Request{}); !errors.Is(err, engine.ErrEmptyPrompt) {
		t.Errorf("an empty prompt: %v", err)
	}
	h, err := e.Submit(engine.Request{Text: "hang"})
	if err != nil {
		t.Fatal(err)
	}
	h.Cancel()
	if got := h.Result(); got.State != event.StateCancelled {
		t.Errorf("cancelled: %+v", got)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.live) != 0 {
		t.Errorf("%d requests are still known", len(e.live))
	}
}

// TestRunnerOfAnEngineThatGoesAway: requests end when the connection breaks, and when no engine listens any more.
func TestRunnerOfAnEngineThatGoesAway(t *testing.T) {
	e, owner, end := running(t, event.CapPrompt)
	ready(t, e)
	h, err := e.Submit(engine.Request{Text: "hang"})
	if err != nil {
		t.Fatal(err)
	}
	_ = owner.server.Close()
	if got := h.Result(); got.State != event.StateFailed || !errors.Is(got.Err, ErrNotConnected) {
		t.Errorf("%+v", got)
	}
	if _, err := e.Submit(engine.Request{Text: "late"}); !errors.Is(err, ErrNotConnected) {
		t.Errorf("submitted without a connection: %v", err)
	}
	end()

	e, _, end = running(t, event.CapPrompt)
	ready(t, e)
	if h, err = e.Submit(engine.Request{Text: "hang"}); err != nil {
		t.Fatal(err)
	}
	end()
	if got := h.Result(); got.State != event.StateCancelled {
		t.Errorf("%+v", got)
	}
}

func TestRunnerWithoutPrompts(t *testing.T) {
	e, _, _ := running(t, event.CapCancel)
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	if err := e.Ready(ctx); err == nil || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("%v", err)
	}
	if _, err := e.Encode(t.Context(), "x"); !errors.Is(err, engine.ErrNoTokenizer) {
		t.Errorf("%v", err)
	}
}
