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
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/socket"
)

// errSilent is the error of a message to an engine whose process has gone silent.
var errSilent = errors.New("the engine does not answer")

// Submit implements runtime.Runner. It waits for the answer of the child, which comes within some ms. A Result has text only
// of a request whose text goes into the events.
func (p *Process) Submit(r runtime.Request) (*runtime.Handle, error) {
	if r.Text == "" && len(r.IDs) == 0 {
		return nil, fmt.Errorf("submit request: %w", runtime.ErrEmptyPrompt)
	}
	p.relay.await(1)
	defer p.relay.await(-1)
	id, err := p.generate(&wire.Generation{
		Prompt: r.Text, IDs: r.IDs, Special: r.Special, Label: r.Label, Group: r.Group, Probe: r.Probe, MaxTokens: r.MaxTokens,
		IgnoreEOS: r.IgnoreEOS, Text: r.SendText, Top: r.TopLogprobs, Picks: r.Picks,
		Temperature: r.Params.Temperature, TopK: r.Params.TopK, TopP: r.Params.TopP, MinP: r.Params.MinP,
		RepeatPenalty: r.Params.RepeatPenalty, Seed: r.Params.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("submit request: %w", err)
	}
	return p.relay.take(id), nil
}

// generate asks the child to continue text.
func (p *Process) generate(g *wire.Generation) (id event.RequestID, err error) {
	err = p.ask(func(ctx context.Context) (err error) {
		id, err = p.client.Generate(ctx, *g)
		return err
	})
	return id, err
}

// ask sends a message, as soon as there is a connection, and waits for the answer.
func (p *Process) ask(send func(context.Context) error) error {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	for {
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		switch {
		case stopped != nil && !errors.Is(stopped, runtime.ErrStopped):
			return fmt.Errorf("%w: %w", runtime.ErrStopped, stopped)
		case stopped != nil:
			return stopped
		case p.relay.stale():
			return errSilent
		}
		err := send(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return errSilent
		case ctx.Err() == nil && (errors.Is(err, socket.ErrNotConnected) || errors.Is(known(err), runtime.ErrStopped)):
			time.Sleep(lookEvery) // an engine that has stopped is about to end, and Run to know why
		default:
			return known(err)
		}
	}
}

// Cancel implements runtime.Runner. It does not wait for the child.
func (p *Process) Cancel(id event.RequestID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.calls.Go(func() { _ = p.ask(func(ctx context.Context) error { return p.client.Cancel(ctx, id) }) })
	}
}

// SetPace implements runtime.Runner.
func (p *Process) SetPace(tokensPerSecond float64) {
	_ = p.tell(change{Pace: &tokensPerSecond}) // of no use to an engine that has ended
}

// mistakes are the errors by which callers tell why a request was refused or has failed.
var mistakes = []error{
	runtime.ErrEmptyPrompt, runtime.ErrPromptTooLong, runtime.ErrUnknownToken, runtime.ErrQueueFull, runtime.ErrStopped,
}

// told is an error that the child has told in words.
type told struct {
	words string
	is    error
}

func (t told) Error() string { return t.words }
func (t told) Unwrap() error { return t.is }

// failure makes an error of the words for one.
func failure(words string) error {
	i := slices.IndexFunc(mistakes, func(err error) bool { return strings.Contains(words, err.Error()) })
	if i < 0 {
		return errors.New(words)
	}
	return told{words, mistakes[i]}
}

// known finds out what an answer means.
func known(err error) error {
	if err == nil || errors.Is(err, socket.ErrNotConnected) || errors.Is(err, socket.ErrNotOffered) {
		return err
	}
	for _, mistake := range mistakes {
		if strings.Contains(err.Error(), mistake.Error()) {
			return mistake
		}
	}
	if why := errors.Unwrap(err); why != nil { // without the address, which means nothing to a user
		return why
	}
	return err
}

// await says that an answer to Submit is waited for, or no more.
func (r *relay) await(more int) {
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

// take is the handle of a request, which may have ended already.
func (r *relay) take(id event.RequestID) *runtime.Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.live[id]
	if q == nil {
		q = r.expect(id)
		if r.over != nil {
			q.ended = true
			q.end(*r.over)
		}
	}
	q.taken = true
	if q.ended {
		delete(r.live, id)
	}
	return q.handle
}
