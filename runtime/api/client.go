// Package api runs requests on servers that speak the HTTP interfaces of OpenAI or Ollama. A Client stands for such a server as a scheduler
// stands for an engine: it takes requests, and tells what becomes of them by the events that an engine in this process would emit, stamped
// where the bytes of the answer are read.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// Options say which server is asked, and how.
type Options struct {
	Address string // http://HOST:PORT or https://HOST/PATH
	API     API    // Auto: the one that the server seems to prefer
	Model   string // "": the server's only one
	Key     string // sent to the server and nowhere else; "": none
	Clock   runtime.Clock
	// Cached lets the server take prompts from its cache of earlier ones, where it can be told not to.
	Cached bool
	// Silence is how long nothing may come of an answer until its request fails; 0: DefaultSilence.
	Silence time.Duration

	connect dial // nil: over the network
}

// DefaultSilence is long enough for a model to be loaded and for a long prompt to be processed on a slow machine.
const DefaultSilence = 10 * time.Minute

// Client is a runtime.Runner and a runtime.Source whose engine is a server.
type Client struct {
	opt       Options
	base      *url.URL
	transport *http.Transport
	server    server
	ready     chan struct{} // closed when sink is set
	sink      event.Sink    // of Run
	untold    atomic.Int64  // finished requests whose tokens the server did not count

	mu       sync.Mutex // guards what follows
	last     event.RequestID
	live     map[event.RequestID]context.CancelCauseFunc
	stopped  bool
	requests sync.WaitGroup
}

// Dial finds out what the server is. Errors: the address, a server that does not answer or wants another key, a model that is not there or not
// named.
func Dial(ctx context.Context, opt Options) (*Client, error) {
	at, err := base(opt.Address)
	if err != nil {
		return nil, err
	}
	if opt.Silence == 0 {
		opt.Silence = DefaultSilence
	}
	c := &Client{
		opt: opt, base: at, transport: newTransport(opt.Clock, opt.connect),
		ready: make(chan struct{}), live: make(map[event.RequestID]context.CancelCauseFunc),
	}
	if err := c.look(ctx); err != nil {
		return nil, fmt.Errorf("ask %s: %w", at, err)
	}
	return c, nil
}

// API is the way in which requests are made.
func (c *Client) API() API { return c.server.api }

// Model is the name of the model that is asked for.
func (c *Client) Model() string { return c.server.model.Name }

// Untold is how many requests have finished without the server telling how many tokens it generated. Each message with text counts as one token of
// theirs.
func (c *Client) Untold() int { return int(c.untold.Load()) }

// Run implements runtime.Source. It returns when ctx has ended and with it every request.
func (c *Client) Run(ctx context.Context, sink event.Sink) error {
	c.sink = sink
	c.introduce(event.EngineReady)
	model := c.server.model
	sink.Emit(event.Event{Kind: event.KindModel, At: c.opt.Clock.Now(), Layer: -1, Data: &model})
	close(c.ready)
	<-ctx.Done()
	c.mu.Lock()
	c.stopped = true
	for _, cancel := range c.live {
		cancel(errCancelled)
	}
	c.mu.Unlock()
	c.requests.Wait()
	c.introduce(event.EngineStopped)
	return nil
}

// introduce tells what the server is.
func (c *Client) introduce(state event.EngineState) {
	now := c.opt.Clock.Now()
	c.sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.Engine{
		Name: c.server.name, Version: c.server.version, Epoch: c.opt.Clock.Epoch(), Caps: c.server.caps, Slots: c.server.slots, State: state,
		Remote: event.Remote{Address: c.base.String(), Link: event.LinkConnected, Since: now},
	}})
}

// errCancelled ends a request that is not wanted any more, errSilent one of which nothing comes.
var (
	errCancelled = errors.New("cancelled")
	errSilent    = errors.New("nothing has come from the server for too long")
)

// Submit implements runtime.Runner. The request is sent at once.
func (c *Client) Submit(r runtime.Request) (*runtime.Handle, error) {
	switch {
	case r.Text == "" && len(r.IDs) == 0:
		return nil, fmt.Errorf("submit request: %w", runtime.ErrEmptyPrompt)
	case len(r.IDs) > 0 && !c.server.ids():
		return nil, errors.New("submit request: the server takes no token ids as a prompt")
	}
	body, err := c.server.body(&r, !c.opt.Cached)
	if err != nil {
		return nil, fmt.Errorf("submit request: %w", err)
	}
	<-c.ready
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("submit request: %w", runtime.ErrStopped)
	}
	c.last++
	id := c.last
	ctx, cancel := context.WithCancelCause(context.Background())
	c.live[id] = cancel
	handle, end := runtime.NewHandle(id, func() { cancel(errCancelled) })
	c.requests.Go(func() {
		q := &request{client: c, id: id, asked: r, began: c.opt.Clock.Now()}
		result := q.run(ctx, body)
		cancel(nil)
		c.mu.Lock()
		delete(c.live, id)
		c.mu.Unlock()
		end(result)
	})
	return handle, nil
}

// Cancel implements runtime.Runner.
func (c *Client) Cancel(id event.RequestID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.live[id]; cancel != nil {
		cancel(errCancelled)
	}
}

// SetPace implements runtime.Runner. Servers cannot be held back.
func (c *Client) SetPace(float64) {}
