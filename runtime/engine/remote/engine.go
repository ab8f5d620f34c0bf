package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// SocketEngine is an engine.Runner and an engine.Source for an engine in another process, used over its event socket.
type SocketEngine struct {
	client *socket.Client

	mu      sync.Mutex // guards the fields below
	live    map[event.RequestID]*task
	pending int            // calls of Submit without an answer yet
	lostAs  *engine.Result // result of requests whose end cannot be received; nil: connected
	changed chan struct{}  // closed and replaced when the connection changes
	refused error          // why the engine refused the connection for good
}

// task is a request that has not ended, or whose handle was not taken yet.
type task struct {
	handle *engine.Handle
	end    func(engine.Result)
	taken  bool // the handle was returned by Submit
	ended  bool
}

// Attach prepares to use the engine at an event socket's address. token is "" for an engine that needs none.
func Attach(at, token string, clock engine.Clock) (*SocketEngine, error) {
	client, err := socket.Dial(at, token, clock)
	if err != nil {
		return nil, err
	}
	return &SocketEngine{
		client: client, live: map[event.RequestID]*task{}, changed: make(chan struct{}),
		lostAs: &engine.Result{State: event.StateFailed, Err: socket.ErrNotConnected},
	}, nil
}

// Run implements engine.Source. When it ends, running requests are cancelled.
func (e *SocketEngine) Run(ctx context.Context, sink event.Sink) error {
	err := e.client.Run(ctx, following{e, sink})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = err
	e.endAll(engine.Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: "cancelled"}})
	return err
}

// Ready waits for the connection. It fails with ctx, or if the engine refuses the connection or accepts no prompts.
func (e *SocketEngine) Ready(ctx context.Context) error {
	for {
		e.mu.Lock()
		changed, refused := e.changed, e.refused
		e.mu.Unlock()
		switch caps := e.client.Offers(); {
		case refused != nil:
			return refused
		case caps.Has(event.CapPrompt):
			return nil
		case caps != 0:
			return errors.New("the engine accepts no prompts from other processes")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(lookAgain): // the client is usable shortly after it reports the connection
		}
	}
}

// lookAgain is the polling interval of Ready, answerWithin the time limit for an answer to a message.
const (
	lookAgain    = 5 * time.Millisecond
	answerWithin = 10 * time.Second
)

// Submit implements engine.Runner. It waits for the engine's answer.
func (e *SocketEngine) Submit(r engine.Request) (*engine.Handle, error) {
	if r.Text == "" && len(r.IDs) == 0 {
		return nil, fmt.Errorf("submit request: %w", engine.ErrEmptyPrompt)
	}
	e.await(1)
	defer e.await(-1)
	ctx, done := context.WithTimeout(context.Background(), answerWithin)
	defer done()
	id, err := e.client.Generate(ctx, wire.Generation{
		Prompt: r.Text, IDs: r.IDs, Special: r.Special, Label: r.Label, Group: r.Group, Probe: r.Probe, MaxTokens: r.MaxTokens,
		IgnoreEOS: r.IgnoreEOS, Text: r.SendText, Top: r.TopLogprobs, Picks: r.Picks,
		Temperature: r.Params.Temperature, TopK: r.Params.TopK, TopP: r.Params.TopP, MinP: r.Params.MinP,
		RepeatPenalty: r.Params.RepeatPenalty, Seed: r.Params.Seed,
	})
	if err != nil {
		for _, known := range []error{engine.ErrQueueFull, engine.ErrPromptTooLong, engine.ErrEmptyPrompt, engine.ErrUnknownToken} {
			if strings.Contains(err.Error(), known.Error()) {
				err = known
			}
		}
		return nil, fmt.Errorf("submit request: %w", err)
	}
	return e.take(id), nil
}

// Cancel implements engine.Runner. It does not wait for the engine.
func (e *SocketEngine) Cancel(id event.RequestID) {
	go func() {
		ctx, done := context.WithTimeout(context.Background(), answerWithin)
		defer done()
		_ = e.client.Cancel(ctx, id) // no effect if the request has ended
	}()
}

// SetPace implements engine.Runner. It does nothing: the engine keeps its own pace.
func (e *SocketEngine) SetPace(float64) {}

// Encode returns ErrNoTokenizer: event sockets have no tokenizer.
func (e *SocketEngine) Encode(context.Context, string) ([]int32, error) { return nil, ErrNoTokenizer }

// following passes the events of an engine on and tracks its requests.
type following struct {
	engine *SocketEngine
	sink   event.Sink
}

// Emit implements event.Sink. A handle ends after the final event of its request.
func (f following) Emit(v event.Event) {
	f.sink.Emit(v)
	switch v.Kind {
	case event.KindEngine:
		if d, ok := v.Data.(*event.EngineInfo); ok && d != nil {
			f.engine.linked(d.Remote.Link)
		}
	case event.KindRequest:
		f.engine.note(&v)
	}
}

// linked processes a change of the connection. When it breaks, running requests fail.
func (e *SocketEngine) linked(link event.Link) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case link == event.LinkConnected:
		e.lostAs = nil
	case link.Down():
		e.endAll(engine.Result{State: event.StateFailed, Err: socket.ErrNotConnected, Outcome: event.Outcome{Reason: socket.ErrNotConnected.Error()}})
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// endAll ends the running requests. The caller holds mu.
func (e *SocketEngine) endAll(how engine.Result) {
	e.lostAs = &how
	for id, t := range e.live {
		if !t.ended {
			t.end(how)
		}
		delete(e.live, id)
	}
}

// note updates the task of a request.
func (e *SocketEngine) note(v *event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.live[v.Req]
	if t == nil {
		if e.pending == 0 { // another client's
			return
		}
		t = e.expect(v.Req)
	}
	if t.ended || !v.State.Final() {
		return
	}
	result := engine.Result{State: v.State}
	if o, ok := v.Data.(*event.Outcome); ok && o != nil {
		result.Outcome = *o
	}
	if v.State == event.StateFailed {
		result.Err = errors.New(result.Reason)
	}
	t.ended = true
	t.end(result)
	if t.taken {
		delete(e.live, v.Req)
	}
}

// expect adds a task for a request. The caller holds mu.
func (e *SocketEngine) expect(id event.RequestID) *task {
	t := &task{}
	t.handle, t.end = engine.NewHandle(id, func() { e.Cancel(id) })
	e.live[id] = t
	return t
}

// take returns the handle of a request, which may have ended already.
func (e *SocketEngine) take(id event.RequestID) *engine.Handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.live[id]
	if t == nil {
		t = e.expect(id)
		if e.lostAs != nil {
			t.ended = true
			t.end(*e.lostAs)
		}
	}
	if t.taken = true; t.ended {
		delete(e.live, id)
	}
	return t.handle
}

// await adds more to the number of pending Submit calls. When none is pending, unclaimed requests belong to other
// clients and are dropped.
func (e *SocketEngine) await(more int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending += more; e.pending > 0 {
		return
	}
	for _, id := range slices.Collect(maps.Keys(e.live)) {
		if !e.live[id].taken {
			delete(e.live, id)
		}
	}
}
