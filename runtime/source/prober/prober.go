// Package prober measures the latency of a server with small requests at an interval: for servers that do not report
// it, and only if the user asks for it. Its requests are marked as llmtop's own traffic.
package prober

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// Contents of a probe.
const (
	Label  = "probe"
	Tokens = 8
	prompt = "Count from one to twenty in words, one word a line, and say nothing else."
)

// DefaultInterval and MinInterval are the default and the shortest time between two probes.
const (
	DefaultInterval = 10 * time.Second
	MinInterval     = time.Second
)

// Limits of probes: after each failure the wait doubles, up to maxBackoff; after each probe the server gets restFactor
// times its duration as a pause; a busy server is not probed.
const (
	maxBackoff = 5 * time.Minute
	restFactor = 9
)

// silence is the longest time without data within a response, maxDuration the longest time of a whole response.
const (
	silence     = time.Minute
	maxDuration = 5 * time.Minute
)

// errTimeout means that a probe took longer than Prober.timeout.
var errTimeout = errors.New("the response did not end in time")

// Options select the server to probe and the interval.
type Options struct {
	Address    string
	Key        string // sent to this server only; "": none
	Model      string // "": the model that the server reports, or its only one
	Interval   time.Duration
	Clock      engine.Clock
	RequestIDs *scrape.RequestIDs // shared with the source that polls the server; nil: none
}

// Prober is an engine.Source that emits the events of its own requests.
type Prober struct {
	opt        Options
	checkEvery time.Duration // time until the first probe, and between checks whether a probe is allowed
	timeout    time.Duration // limit for one probe
	restFactor time.Duration // the pause after a probe is at least this factor times its duration
	conn       *connection

	mu            sync.Mutex // guards the fields below, which observer sets
	ready         bool       // connected, not loading and not asleep
	busy          bool       // a request would have to wait
	engineName    string
	model         string
	severalModels bool // several models are loaded
}

// connection is an open connection for probes.
type connection struct {
	client *remote.Client
	model  string
	stop   context.CancelFunc
	done   chan struct{}
}

// New prepares to probe; it sends nothing before Run, and before the observed events show that the server is ready.
func New(opt Options) *Prober {
	opt.Interval = max(opt.Interval, MinInterval)
	if opt.RequestIDs == nil {
		opt.RequestIDs = new(scrape.RequestIDs)
	}
	return &Prober{opt: opt, checkEvery: MinInterval, timeout: maxDuration, restFactor: restFactor}
}

// Run implements engine.Source. At most one probe is in progress.
func (p *Prober) Run(ctx context.Context, sink event.Sink) error {
	defer p.disconnect()
	failures, lastError := 0, ""
	for wait := p.checkEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if !p.mayProbe() {
			wait = p.checkEvery
			continue
		}
		began := time.Now()
		err := p.probe(ctx, sink)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			failures, lastError = 0, ""
			wait = p.pause(time.Since(began), 0)
			continue
		}
		p.disconnect()
		failures++
		wait = p.pause(time.Since(began), failures)
		if text := err.Error(); text != lastError {
			lastError = text
			sink.Emit(event.Event{Kind: event.KindLog, At: p.opt.Clock.Now(), Layer: -1, Text: "probe: " + text})
		}
	}
}

// pause returns the wait after a probe of the given duration, with the given number of failures in a row.
func (p *Prober) pause(took time.Duration, failures int) time.Duration {
	wait := max(p.opt.Interval, p.restFactor*took)
	if failures > 0 {
		wait = max(wait, min(p.opt.Interval<<min(failures, 16), maxBackoff))
	}
	return wait
}

// mayProbe reports whether a probe would neither have to wait nor wake up or load a model.
func (p *Prober) mayProbe() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	loads := p.engineName == "Ollama" && p.model == "" // Ollama would load a model
	return p.ready && !p.busy && !loads
}

// probe sends one probe and waits for its end.
func (p *Prober) probe(ctx context.Context, sink event.Sink) error {
	if err := p.connect(ctx, sink); err != nil {
		return err
	}
	seed := 1 + uint64(rand.Int32N(1<<31-2))
	p.opt.RequestIDs.SetSeed(seed)
	handle, err := p.conn.client.Submit(engine.Request{
		Text: prompt, Label: Label, Probe: true, MaxTokens: Tokens, IgnoreEOS: true, Params: engine.Params{Seed: seed},
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done(): // disconnecting cancels the probe
		return ctx.Err()
	case <-time.After(p.timeout):
		return errTimeout
	case <-handle.Done():
		return handle.Result().Err
	}
}

// connect opens a connection for the current model, unless there is one.
func (p *Prober) connect(ctx context.Context, sink event.Sink) error {
	model := p.requestModel()
	if p.conn != nil && p.conn.model == model {
		return nil
	}
	p.disconnect()
	client, err := remote.Dial(ctx, remote.Options{Address: p.opt.Address, Key: p.opt.Key, Model: model, Clock: p.opt.Clock, Silence: silence})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	l := &connection{client: client, model: model, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		_ = client.Run(ctx, probes(sink, p.opt.RequestIDs)) // it ends only with ctx
	}()
	p.conn = l
	return nil
}

func (p *Prober) disconnect() {
	if l := p.conn; l != nil {
		l.stop()
		<-l.done
		p.conn = nil
	}
}

// requestModel returns the model to request; "" for the server's only one.
func (p *Prober) requestModel() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opt.Model != "" || p.severalModels {
		return p.opt.Model
	}
	return p.model
}
