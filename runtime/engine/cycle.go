package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Cycle keeps a runner busy with built-in prompts in turn. It ends when a user submits a prompt: the user's prompt goes
// first and running requests of the cycle are cancelled.
type Cycle struct {
	runner   Runner
	requests []Request
	width    int
	pause    time.Duration

	interrupted chan struct{} // closed when a user has submitted a prompt
	stop        sync.Once

	mu   sync.Mutex
	next int // index of the next request
}

// NewCycle prepares a cycle of at least one request, of which width run concurrently. After each request it pauses for
// rest, so that the end of the text can be read and the idle machine observed.
func NewCycle(r Runner, requests []Request, width int, rest time.Duration) *Cycle {
	return &Cycle{runner: r, requests: requests, width: width, pause: rest, interrupted: make(chan struct{})}
}

// Run submits requests until ctx ends, a user submits a prompt, or the scheduler stops. It returns an error only in the
// last case.
func (c *Cycle) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.interrupted:
			cancel()
		case <-ctx.Done():
		}
	}()
	g, turns := errgroup.WithContext(ctx)
	for range c.width {
		g.Go(func() error { return c.runTurns(turns) })
	}
	return g.Wait()
}

// runTurns runs one request after another. It waits while the queue is full.
func (c *Cycle) runTurns(ctx context.Context) error {
	for ctx.Err() == nil {
		h, err := c.submitNext()
		if err == nil {
			h.wait(ctx)
		} else if !errors.Is(err, ErrQueueFull) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.pause):
		}
	}
	return nil
}

// wait returns when the request has ended. If ctx ends first, it cancels the request.
func (h *Handle) wait(ctx context.Context) {
	select {
	case <-h.done:
	case <-ctx.Done():
		h.Cancel()
	}
}

// submitNext queues the next request. A rejected request is tried again next time.
func (c *Cycle) submitNext() (*Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.runner.Submit(c.requests[c.next])
	if err == nil {
		c.next = (c.next + 1) % len(c.requests)
	}
	return h, err
}

// Submit queues a user's prompt and ends the cycle. A rejected prompt does not end it.
func (c *Cycle) Submit(r Request) (*Handle, error) {
	h, err := c.runner.Submit(r)
	if err == nil {
		c.stop.Do(func() { close(c.interrupted) })
	}
	return h, err
}
