package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// errSilent is the error of a message to an engine whose process is not responding.
var errSilent = errors.New("the engine does not answer")

// Submit implements engine.Runner. It waits for the child's answer, which takes a few ms. The Result has text only if
// the request has SendText set.
func (p *Process) Submit(r engine.Request) (*engine.Handle, error) {
	if r.Text == "" && len(r.IDs) == 0 {
		return nil, fmt.Errorf("submit request: %w", engine.ErrEmptyPrompt)
	}
	p.relay.addPending(1)
	defer p.relay.addPending(-1)
	id, err := p.generate(&wire.Generation{
		Prompt: r.Text, IDs: r.IDs, Special: r.Special, Label: r.Label, Group: r.Group, Probe: r.Probe, MaxTokens: r.MaxTokens,
		IgnoreEOS: r.IgnoreEOS, Text: r.SendText, Top: r.TopLogprobs, Picks: r.Picks,
		Temperature: r.Params.Temperature, TopK: r.Params.TopK, TopP: r.Params.TopP, MinP: r.Params.MinP,
		RepeatPenalty: r.Params.RepeatPenalty, Seed: r.Params.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("submit request: %w", err)
	}
	return p.relay.claim(id), nil
}

// generate asks the child to continue text.
func (p *Process) generate(g *wire.Generation) (id event.RequestID, err error) {
	err = p.ask(func(ctx context.Context) (err error) {
		id, err = p.client.Generate(ctx, *g)
		return err
	})
	return id, err
}

// ask sends a message once connected, and waits for the answer.
func (p *Process) ask(send func(context.Context) error) error {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	for {
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		switch {
		case stopped != nil && !errors.Is(stopped, engine.ErrStopped):
			return fmt.Errorf("%w: %w", engine.ErrStopped, stopped)
		case stopped != nil:
			return stopped
		case p.relay.stale():
			return errSilent
		}
		err := send(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return errSilent
		case ctx.Err() == nil && (errors.Is(err, socket.ErrNotConnected) || errors.Is(decodeError(err), engine.ErrStopped)):
			time.Sleep(pollInterval) // an engine that has stopped is about to end; Run then has the reason
		default:
			return decodeError(err)
		}
	}
}

// Cancel implements engine.Runner. It does not wait for the child.
func (p *Process) Cancel(id event.RequestID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.calls.Go(func() { _ = p.ask(func(ctx context.Context) error { return p.client.Cancel(ctx, id) }) })
	}
}

// SetPace implements engine.Runner.
func (p *Process) SetPace(tokensPerSecond float64) {
	_ = p.send(change{Pace: &tokensPerSecond}) // fails if the engine has ended, which does not matter
}

// requestErrors are the errors that callers test for when a request was rejected or has failed.
var requestErrors = []error{
	engine.ErrEmptyPrompt, engine.ErrPromptTooLong, engine.ErrUnknownToken, engine.ErrQueueFull, engine.ErrStopped,
}

// childError is an error received as text from the child. It wraps the matching error of requestErrors.
type childError struct {
	text  string
	cause error
}

func (e childError) Error() string { return e.text }
func (e childError) Unwrap() error { return e.cause }

// parseError converts the text of an error to an error.
func parseError(words string) error {
	i := slices.IndexFunc(requestErrors, func(err error) bool { return strings.Contains(words, err.Error()) })
	if i < 0 {
		return errors.New(words)
	}
	return childError{words, requestErrors[i]}
}

// decodeError maps the error of an answer to one of requestErrors.
func decodeError(err error) error {
	if err == nil || errors.Is(err, socket.ErrNotConnected) || errors.Is(err, socket.ErrNotOffered) {
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

// addPending changes the number of calls of Submit that wait for an answer.
func (r *relay) addPending(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending += more
	if r.pending > 0 {
		return
	}
	for id, q := range r.live {
		if q.ended {
			delete(r.live, id)
		}
	}
}

// claim returns the handle of a request, which may have ended already.
func (r *relay) claim(id event.RequestID) *engine.Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.live[id]
	if q == nil {
		q = r.addRequest(id)
		if r.finalResult != nil {
			q.ended = true
			q.end(*r.finalResult)
		}
	}
	q.claimed = true
	if q.ended {
		delete(r.live, id)
	}
	return q.handle
}
