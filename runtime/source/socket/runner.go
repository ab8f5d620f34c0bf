package socket

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
)

// ErrSilent is the error of a message to an engine that does not respond.
var ErrSilent = errors.New("the engine does not answer")

const (
	// answerWithin is the time limit for an answer to a message.
	answerWithin = 10 * time.Second
	// lookAgain is the polling interval for a connection.
	lookAgain = 2 * time.Millisecond
)

// Runner is an engine.Runner and an engine.Source for the engine at an event socket. It may be the engine's owner: then the
// engine ends with its connection.
type Runner struct {
	client *Client
	// adapt changes what the engine reports of itself, and returns whether to emit it. Only an owner has it.
	adapt func(*event.EngineInfo) bool
	sink  event.Sink     // set by Run
	calls sync.WaitGroup // cancellations that are not answered yet

	mu      sync.Mutex // guards the fields below
	link    event.Link
	info    event.EngineInfo // as last emitted
	changed chan struct{}    // closed and replaced when the connection changes
	stopped error            // why no more requests are sent; nil: they are
	live    map[event.RequestID]*request
	pending int            // calls of Submit without an answer yet
	lost    *engine.Result // result of requests whose end cannot be received any more; nil: it can
}

// request is a request that has not ended, or whose handle Submit has not returned yet.
type request struct {
	handle  *engine.Handle
	end     func(engine.Result)
	claimed bool // Submit has returned the handle
	ended   bool

	prompt, generated int
	ids               []int32
	text              strings.Builder
}

// NewRunner prepares to use the engine at an address that others own. See Dial for token, clock and errors.
func NewRunner(at, token string, clock engine.Clock) (*Runner, error) {
	r, err := newRunner(at, token, clock)
	if err == nil {
		r.lost = &engine.Result{State: event.StateFailed, Err: ErrNotConnected}
	}
	return r, err
}

// NewOwner prepares to use the engine at an address, of which the caller is the owner: messages wait for the connection,
// and requests end by EndAll. adapt changes what the engine reports of itself, and returns whether to emit it.
func NewOwner(at string, clock engine.Clock, adapt func(*event.EngineInfo) bool) (*Runner, error) {
	r, err := newRunner(at, "", clock)
	if err == nil {
		r.adapt = adapt
	}
	return r, err
}

func newRunner(at, token string, clock engine.Clock) (*Runner, error) {
	client, err := Dial(at, token, clock)
	if err != nil {
		return nil, err
	}
	return &Runner{client: client, live: map[event.RequestID]*request{}, changed: make(chan struct{})}, nil
}

// PID returns the process of the engine, see Client.PID.
func (r *Runner) PID() int { return r.client.PID() }

// owner reports whether the engine ends with its connection.
func (r *Runner) owner() bool { return r.adapt != nil }

// Run implements engine.Source. When it ends, running requests are cancelled, except those of an owner.
func (r *Runner) Run(ctx context.Context, sink event.Sink) error {
	r.sink = sink
	err := r.client.Run(ctx, event.SinkFunc(r.relay))
	if !r.owner() {
		why := err
		if why == nil {
			why = engine.ErrStopped
		}
		r.stop(why)
		r.endAll(engine.Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: "cancelled"}}, 0, event.Tee{})
		r.calls.Wait()
	}
	return err
}

// Ready waits for the connection. It fails with ctx, or if the engine refuses the connection or accepts no prompts.
func (r *Runner) Ready(ctx context.Context) error {
	for {
		r.mu.Lock()
		changed, stopped := r.changed, r.stopped
		r.mu.Unlock()
		switch caps := r.client.Offers(); {
		case stopped != nil:
			return stopped
		case caps.Has(event.CapPrompt):
			return nil
		case caps != 0:
			return errors.New("the engine accepts no prompts over this connection: over TCP, give both sides --token-file FILE")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(lookAgain): // the client is usable shortly after it reports the connection
		}
	}
}

// Submit implements engine.Runner. It waits for the engine's answer, which takes a few ms. The Result has text only if the
// request has SendText set.
func (r *Runner) Submit(q engine.Request) (*engine.Handle, error) {
	if q.Text == "" && len(q.IDs) == 0 {
		return nil, fmt.Errorf("submit request: %w", engine.ErrEmptyPrompt)
	}
	r.await(1)
	defer r.await(-1)
	id, err := r.Control(&wire.Control{Type: wire.Generate, Generation: wire.Generation{
		Prompt: q.Text, IDs: q.IDs, Special: q.Special, Label: q.Label, Group: q.Group, Probe: q.Probe, MaxTokens: q.MaxTokens,
		IgnoreEOS: q.IgnoreEOS, Text: q.SendText, Top: q.TopLogprobs, Picks: q.Picks,
		Temperature: q.Params.Temperature, TopK: q.Params.TopK, TopP: q.Params.TopP, MinP: q.Params.MinP,
		RepeatPenalty: q.Params.RepeatPenalty, Seed: q.Params.Seed,
	}})
	if err != nil {
		return nil, fmt.Errorf("submit request: %w", err)
	}
	return r.claim(id), nil
}

// Cancel implements engine.Runner. It does not wait for the engine.
func (r *Runner) Cancel(id event.RequestID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.calls.Go(func() { _ = r.send(func(ctx context.Context) error { return r.client.Cancel(ctx, id) }) }) // it may have ended
	}
}

// SetPace implements engine.Runner. It does nothing: the engine keeps its own pace.
func (r *Runner) SetPace(float64) {}

// Encode returns engine.ErrNoTokenizer: event sockets have no tokenizer.
func (r *Runner) Encode(context.Context, string) ([]int32, error) { return nil, engine.ErrNoTokenizer }

// Control asks the engine to act on a message, and returns the request of one that generates.
func (r *Runner) Control(m *wire.Control) (id event.RequestID, err error) {
	err = r.send(func(ctx context.Context) (err error) {
		again := *m // sending changes it
		id, err = r.client.Control(ctx, &again)
		return err
	})
	return id, err
}

// send sends a message and waits for the answer. An owner's message waits for the connection.
func (r *Runner) send(message func(context.Context) error) error {
	ctx, done := context.WithTimeout(context.Background(), answerWithin)
	defer done()
	for {
		r.mu.Lock()
		stopped, link := r.stopped, r.link
		r.mu.Unlock()
		switch {
		case stopped != nil:
			return stopped
		case r.owner() && link == event.LinkStale:
			return ErrSilent
		}
		err := message(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return ErrSilent
		case r.owner() && ctx.Err() == nil && (errors.Is(err, ErrNotConnected) || errors.Is(requestError(err), engine.ErrStopped)):
			time.Sleep(lookAgain) // an engine that has stopped is about to end; its owner then has the reason
		default:
			return requestError(err)
		}
	}
}

// EndAll ends the remaining requests of an owner in order, emits their ends, and rejects further ones with why.
func (r *Runner) EndAll(at event.Time, how engine.Result, why error) {
	r.stop(why)
	r.endAll(how, at, r.sink)
	r.calls.Wait()
}

// stop rejects further messages.
func (r *Runner) stop(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = why
}

// endAll ends the remaining requests in order, and emits their last events.
func (r *Runner) endAll(how engine.Result, at event.Time, sink event.Sink) {
	r.mu.Lock()
	r.lost = &how
	ids := slices.Sorted(maps.Keys(r.live))
	left := make([]*request, len(ids))
	for i, id := range ids {
		left[i] = r.live[id]
	}
	clear(r.live)
	r.mu.Unlock()
	for i, q := range left {
		if q.ended {
			continue
		}
		result := how
		result.Prompt, result.Generated, result.IDs, result.Text = q.prompt, q.generated, q.ids, q.text.String()
		outcome := result.Outcome
		sink.Emit(event.Event{Kind: event.KindRequest, At: at, Req: ids[i], State: how.State, Layer: -1, Data: &outcome})
		q.end(result)
	}
}

// State returns what the engine last reported of itself, and the state of the connection.
func (r *Runner) State() (event.EngineInfo, event.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info, r.link
}

// requestErrors are the errors that callers test for when a request was rejected or has failed.
var requestErrors = []error{
	engine.ErrEmptyPrompt, engine.ErrPromptTooLong, engine.ErrUnknownToken, engine.ErrQueueFull, engine.ErrStopped,
}

// ParseError converts the text of an engine's error to an error, which wraps that of the package engine if there is one.
func ParseError(text string) error {
	for _, cause := range requestErrors {
		if before, after, ok := strings.Cut(text, cause.Error()); ok {
			return fmt.Errorf("%s%w%s", before, cause, after)
		}
	}
	return errors.New(text)
}

// requestError maps the error of an answer to one of requestErrors.
func requestError(err error) error {
	if err == nil || errors.Is(err, ErrNotConnected) || errors.Is(err, ErrNotOffered) {
		return err
	}
	for _, mistake := range requestErrors {
		if strings.Contains(err.Error(), mistake.Error()) {
			return mistake
		}
	}
	if why := errors.Unwrap(err); why != nil { // drop the socket address, which does not help a user
		return why
	}
	return err
}
