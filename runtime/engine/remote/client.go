// Package remote runs requests on servers with the HTTP interfaces of OpenAI or Ollama. A Client replaces a scheduler:
// it accepts requests and emits the same events as an engine in this process, stamped where the bytes of the answer are
// read.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// Options configure a client.
type Options struct {
	Address string // http://HOST:PORT or https://HOST/PATH
	API     API    // Auto: the one that reports most for this kind of server
	Model   string // "": the server's only model
	Key     string // API key, sent only to the server; "": none
	Clock   engine.Clock
	// Cached lets the server use its prompt cache. Otherwise requests bypass it, if the server can.
	Cached bool
	// Silence is the time without data after which a request fails; 0: DefaultSilence.
	Silence time.Duration

	connect func(ctx context.Context, network, address string) (net.Conn, error) // nil: over the network
}

// DefaultSilence is long enough for loading a model and processing a long prompt on a slow machine.
const DefaultSilence = 10 * time.Minute

// Client is an engine.Runner and an engine.Source whose engine is a server.
type Client struct {
	opt       Options
	base      *url.URL
	transport *http.Transport
	server    server
	ready     chan struct{} // closed when sink is set
	sink      event.Sink    // set by Run

	Uncounted  atomic.Int64 // finished requests without a token count from the server: each message with text counts as one
	Clumped    atomic.Int64 // finished requests most messages of which came together with others
	Unstreamed atomic.Int64 // finished requests whose token count does not fit their text, as with hidden reasoning: no TPOT

	mu       sync.Mutex // guards the fields below
	last     event.RequestID
	live     map[event.RequestID]context.CancelCauseFunc
	stopped  bool
	requests sync.WaitGroup
}

// Dial identifies the server and its model. It fails on an invalid address, if the server does not answer or needs
// another key, or if the model is missing or ambiguous.
func Dial(ctx context.Context, opt Options) (*Client, error) {
	at, err := fetch.ParseAddress(opt.Address, "set LLMTOP_API_KEY or use a key file")
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
		return nil, fmt.Errorf("query %s: %w", at, err)
	}
	return c, nil
}

// API returns the interface in use.
func (c *Client) API() API { return c.server.api }

// Model returns the name of the model in use.
func (c *Client) Model() string { return c.server.model.Name }

// Run implements engine.Source. It returns when ctx and all requests have ended.
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

// introduce emits the server's description and state.
func (c *Client) introduce(state event.EngineState) {
	now := c.opt.Clock.Now()
	c.sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{
		Name: string(c.server.kind), Version: c.server.version, Epoch: c.opt.Clock.Epoch(), Caps: c.server.caps, Slots: c.server.slots, State: state,
		Remote: event.Remote{Address: c.base.String(), Link: event.LinkConnected, Since: now},
	}})
}

// errCancelled ends a request that was cancelled, errSilent one that received no data for too long.
var (
	errCancelled = errors.New("cancelled")
	errSilent    = errors.New("no data from the server for too long")
)

// Submit implements engine.Runner. The request is sent at once.
func (c *Client) Submit(r engine.Request) (*engine.Handle, error) {
	switch {
	case r.Text == "" && len(r.IDs) == 0:
		return nil, fmt.Errorf("submit request: %w", engine.ErrEmptyPrompt)
	case len(r.IDs) > 0 && !c.server.ids():
		return nil, errors.New("submit request: the server accepts no token ids as a prompt")
	}
	body, err := c.server.body(&r, !c.opt.Cached)
	if err != nil {
		return nil, fmt.Errorf("submit request: %w", err)
	}
	<-c.ready
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("submit request: %w", engine.ErrStopped)
	}
	c.last++
	id := c.last
	ctx, cancel := context.WithCancelCause(context.Background())
	c.live[id] = cancel
	handle, end := engine.NewHandle(id, func() { cancel(errCancelled) })
	c.requests.Go(func() {
		q := newRequest(c, id, r)
		q.began = c.opt.Clock.Now()
		result := q.run(ctx, body)
		cancel(nil)
		c.mu.Lock()
		delete(c.live, id)
		c.mu.Unlock()
		end(result)
	})
	return handle, nil
}

// Cancel implements engine.Runner.
func (c *Client) Cancel(id event.RequestID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.live[id]; cancel != nil {
		cancel(errCancelled)
	}
}

// SetPace implements engine.Runner. It does nothing: servers cannot be throttled.
func (c *Client) SetPace(float64) {}
