package api

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
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/socket"
)

// Engine is a runtime.Runner and a runtime.Source whose engine lets others watch and use it over an event socket.
type Engine struct {
	client *socket.Client

	mu      sync.Mutex // guards what follows
	live    map[event.RequestID]*task
	pending int             // calls to Submit whose answer has not come
	over    *runtime.Result // how requests end of which nothing will be heard; nil while there is a connection
	changed chan struct{}   // closed, and made anew, when the connection changes
	refused error           // why there will be none
}

// task is a request that has not ended, or whose handle nobody has asked for yet.
type task struct {
	handle *runtime.Handle
	end    func(runtime.Result)
	taken  bool // the handle
	ended  bool
}

// Attach prepares to use the engine at an address of the event socket. token is "" for an engine that wants none.
func Attach(at, token string, clock runtime.Clock) (*Engine, error) {
	client, err := socket.Dial(at, token, clock)
	if err != nil {
		return nil, err
	}
	return &Engine{
		client: client, live: map[event.RequestID]*task{}, changed: make(chan struct{}),
		over: &runtime.Result{State: event.StateFailed, Err: socket.ErrNotConnected},
	}, nil
}

// Run implements runtime.Source. Requests that run when it ends are cancelled.
func (e *Engine) Run(ctx context.Context, sink event.Sink) error {
	err := e.client.Run(ctx, following{e, sink})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = err
	e.endAll(runtime.Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: "cancelled"}})
	return err
}

// Ready waits for the connection. Errors: that of ctx; an engine that refuses, or that takes no prompts.
func (e *Engine) Ready(ctx context.Context) error {
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
			return errors.New("the engine takes no prompts from others")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(lookAgain): // the client can be used a little after it has told of the connection
		}
	}
}

// lookAgain is how often a connection is looked for, answerWithin how long the answer to a message may take.
const (
	lookAgain    = 5 * time.Millisecond
	answerWithin = 10 * time.Second
)

// Submit implements runtime.Runner. It waits for the answer of the engine.
func (e *Engine) Submit(r runtime.Request) (*runtime.Handle, error) {
	if r.Text == "" && len(r.IDs) == 0 {
		return nil, fmt.Errorf("submit request: %w", runtime.ErrEmptyPrompt)
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
		for _, known := range []error{runtime.ErrQueueFull, runtime.ErrPromptTooLong, runtime.ErrEmptyPrompt, runtime.ErrUnknownToken} {
			if strings.Contains(err.Error(), known.Error()) {
				err = known
			}
		}
		return nil, fmt.Errorf("submit request: %w", err)
	}
	return e.take(id), nil
}

// Cancel implements runtime.Runner. It does not wait for the engine.
func (e *Engine) Cancel(id event.RequestID) {
	go func() {
		ctx, done := context.WithTimeout(context.Background(), answerWithin)
		defer done()
		_ = e.client.Cancel(ctx, id) // of no use for a request that has ended
	}()
}

// SetPace implements runtime.Runner. Engines elsewhere keep their own pace.
func (e *Engine) SetPace(float64) {}

// Encode is not offered by event sockets: the error is ErrNoTokenizer.
func (e *Engine) Encode(context.Context, string) ([]int32, error) { return nil, ErrNoTokenizer }

// following passes the events of an engine on and follows its requests.
type following struct {
	engine *Engine
	sink   event.Sink
}

// Emit implements event.Sink. A handle ends after the event that tells of its end.
func (f following) Emit(v event.Event) {
	f.sink.Emit(v)
	switch v.Kind {
	case event.KindEngine:
		if d, ok := v.Data.(*event.Engine); ok && d != nil {
			f.engine.linked(d.Remote.Link)
		}
	case event.KindRequest:
		f.engine.note(&v)
	}
}

// linked takes in how the connection stands. What runs when it breaks has failed.
func (e *Engine) linked(link event.Link) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch link {
	case event.LinkConnected:
		e.over = nil
	case event.LinkDisconnected, event.LinkRefused:
		e.endAll(runtime.Result{State: event.StateFailed, Err: socket.ErrNotConnected, Outcome: event.Outcome{Reason: socket.ErrNotConnected.Error()}})
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// endAll ends the requests that run. The caller holds mu.
func (e *Engine) endAll(how runtime.Result) {
	e.over = &how
	for id, t := range e.live {
		if !t.ended {
			t.end(how)
		}
		delete(e.live, id)
	}
}

// note keeps account of a request.
func (e *Engine) note(v *event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.live[v.Req]
	if t == nil {
		if e.pending == 0 { // somebody else's
			return
		}
		t = e.expect(v.Req)
	}
	if t.ended || !v.State.Final() {
		return
	}
	result := runtime.Result{State: v.State}
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

// expect makes room for a request. The caller holds mu.
func (e *Engine) expect(id event.RequestID) *task {
	t := &task{}
	t.handle, t.end = runtime.NewHandle(id, func() { e.Cancel(id) })
	e.live[id] = t
	return t
}

// take is the handle of a request, which may have ended already.
func (e *Engine) take(id event.RequestID) *runtime.Handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.live[id]
	if t == nil {
		t = e.expect(id)
		if e.over != nil {
			t.ended = true
			t.end(*e.over)
		}
	}
	if t.taken = true; t.ended {
		delete(e.live, id)
	}
	return t.handle
}

// await says that an answer to Submit is waited for, or no more. Requests that nobody has asked for by then are somebody else's.
func (e *Engine) await(more int) {
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
