package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Cycle keeps a runner busy with built-in prompts, in turn, until somebody types one: that one goes first, what the cycle
// has running is cancelled, and the cycle is over, since who has asked something wants to look at the answer.
type Cycle struct {
	runner   Runner
	requests []Request
	width    int
	rest     time.Duration

	over chan struct{} // closed when somebody has typed a prompt
	stop sync.Once

	mu   sync.Mutex
	next int // index of the next request
}

// NewCycle prepares a cycle of requests, at least one, of which width run side by side. Between a request and the next one in
// its place it rests, so that the end of a text can be read and the machine seen idle.
func NewCycle(r Runner, requests []Request, width int, rest time.Duration) *Cycle {
	return &Cycle{runner: r, requests: requests, width: width, rest: rest, over: make(chan struct{})}
}

// Run submits requests until ctx ends, somebody types a prompt, or the scheduler stops, which is the only error.
func (c *Cycle) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	g, turns := errgroup.WithContext(ctx)
	for range c.width {
		g.Go(func() error { return c.turn(turns) })
	}
	return g.Wait()
}

// turn runs one request after another. While the queue is full it leaves the engine to others.
func (c *Cycle) turn(ctx context.Context) error {
	for ctx.Err() == nil {
		h, err := c.submitNext()
		if err == nil {
			h.wait(ctx)
		} else if !errors.Is(err, ErrQueueFull) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.rest):
		}
	}
	return nil
}

// wait returns when the request has ended; when ctx ends first, it cancels the request.
func (h *Handle) wait(ctx context.Context) {
	select {
	case <-h.done:
	case <-ctx.Done():
		h.Cancel()
	}
}

// submitNext queues the next request in turn; one that is refused stays the next.
func (c *Cycle) submitNext() (*Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.runner.Submit(c.requests[c.next])
	if err == nil {
		c.next = (c.next + 1) % len(c.requests)
	}
	return h, err
}

// Submit queues what somebody has typed and ends the cycle. A prompt that is refused leaves the cycle as it is.
func (c *Cycle) Submit(r Request) (*Handle, error) {
	h, err := c.runner.Submit(r)
	if err == nil {
		c.stop.Do(func() { close(c.over) })
	}
	return h, err
}
