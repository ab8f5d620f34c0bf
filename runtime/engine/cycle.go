package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// ResumeAfter is how long a cycle waits after the end of the user's last prompt, so that its numbers can be read.
const ResumeAfter = 30 * time.Second

// Cycle keeps a runner busy with built-in prompts in turn. A user's prompt goes first: running requests of the cycle are
// cancelled, and it goes on ResumeAfter the end of the prompt.
type Cycle struct {
	runner   Runner
	requests []Request
	width    int
	pause    time.Duration

	mu    sync.Mutex
	next  int                // index of the next request
	users []*Handle          // the user's prompts since the turns were interrupted
	stop  context.CancelFunc // interrupts the turns; nil before the first
}

// NewCycle prepares a cycle of at least one request, of which width run concurrently. After each request it pauses for
// rest, so that the end of the text can be read and the idle machine observed.
func NewCycle(r Runner, requests []Request, width int, rest time.Duration) *Cycle {
	return &Cycle{runner: r, requests: requests, width: width, pause: rest}
}

// Run submits requests until ctx ends or the scheduler stops. It returns an error only in the last case.
func (c *Cycle) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.runUntilPrompt(ctx); err != nil {
			return err
		}
		c.waitForUser(ctx)
	}
	return nil
}

// runUntilPrompt submits requests until ctx ends or a user submits a prompt.
func (c *Cycle) runUntilPrompt(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.mu.Lock()
	if c.stop = stop; len(c.users) > 0 {
		stop()
	}
	c.mu.Unlock()
	g, turns := errgroup.WithContext(ctx)
	for range c.width {
		g.Go(func() error { return c.runTurns(turns) })
	}
	return g.Wait()
}

// waitForUser returns ResumeAfter the end of the user's last prompt, or when ctx ends.
func (c *Cycle) waitForUser(ctx context.Context) {
	for {
		c.mu.Lock()
		users := c.users
		c.users = nil
		c.mu.Unlock()
		if len(users) == 0 {
			return
		}
		for _, h := range users {
			select {
			case <-h.done:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(ResumeAfter):
		case <-ctx.Done():
			return
		}
	}
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

// Submit queues a user's prompt and interrupts the cycle. A rejected prompt does not interrupt it.
func (c *Cycle) Submit(r Request) (*Handle, error) {
	h, err := c.runner.Submit(r)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.users = append(c.users, h); c.stop != nil {
			c.stop()
		}
	}
	return h, err
}
