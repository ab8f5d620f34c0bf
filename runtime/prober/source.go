// Package prober measures a server by small requests of llmtop's own, one now and then: for servers that tell nothing of their latency, and for
// nobody who has not asked for it. What it sends is marked as llmtop's own traffic.
package prober

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/api"
)

// What a probe asks for.
const (
	Label  = "probe"
	Tokens = 8
	prompt = "Count from one to twenty in words, one word a line, and say nothing else."
)

// DefaultEvery and LeastEvery are how often a probe is sent if nobody says how often, and at most.
const (
	DefaultEvery = 10 * time.Second
	LeastEvery   = time.Second
)

// What holds probes back: a server that has failed is left alone for twice as long each time up to longestWait, one that is slow has nine times as
// long for itself as the probe took, and one that works on as much as it can is not asked at all.
const (
	longestWait = 5 * time.Minute
	share       = 9
)

// silence is how long nothing may come of an answer, and longest how long one may go on.
const (
	silence = time.Minute
	longest = 5 * time.Minute
)

var errEndless = errors.New("the answer has no end")

// Options say which server is probed, and how often.
type Options struct {
	Address string
	Key     string // sent to the server and nowhere else; "": none
	Model   string // "": the one that the server has told, or its only one
	Every   time.Duration
	Clock   runtime.Clock
	Shared  *Shared // with who watches the server; nil: nobody does
}

// Source is a runtime.Source of the events of its requests.
type Source struct {
	opt   Options
	first time.Duration // until the first one, and between looks whether one may be sent
	last  time.Duration // after which one is given up
	rest  time.Duration // for how many times as long as a probe took the server is left alone
	next  *link

	mu    sync.Mutex // guards what follows, which watching has told
	ready bool       // connected, and neither loading nor asleep
	full  bool       // a request would have to wait
	name  string     // of the engine
	model string
	many  bool // models are loaded
}

// link is a connection that can take requests.
type link struct {
	client *api.Client
	model  string
	stop   context.CancelFunc
	done   chan struct{}
}

// New prepares to probe; nothing is sent until Run, and until watching has told that the server is there.
func New(opt Options) *Source {
	opt.Every = max(opt.Every, LeastEvery)
	if opt.Shared == nil {
		opt.Shared = new(Shared)
	}
	return &Source{opt: opt, first: LeastEvery, last: longest, rest: share}
}

// Run implements runtime.Source. One request is on its way at most.
func (p *Source) Run(ctx context.Context, sink event.Sink) error {
	defer p.hangUp()
	failures, said := 0, ""
	for wait := p.first; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if !p.mayAsk() {
			wait = p.first
			continue
		}
		began := time.Now()
		err := p.ask(ctx, sink)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			failures, said = 0, ""
			wait = p.pause(time.Since(began), 0)
			continue
		}
		p.hangUp()
		failures++
		wait = p.pause(time.Since(began), failures)
		if words := err.Error(); words != said {
			said = words
			sink.Emit(event.Event{Kind: event.KindLog, At: p.opt.Clock.Now(), Layer: -1, Text: "probe: " + words})
		}
	}
}

// pause is how long to leave the server alone after a probe that took so long, the last of so many failures in a row.
func (p *Source) pause(took time.Duration, failures int) time.Duration {
	wait := max(p.opt.Every, p.rest*took)
	if failures > 0 {
		wait = max(wait, min(p.opt.Every<<min(failures, 16), longestWait))
	}
	return wait
}

// mayAsk reports whether a probe would neither wait nor wake a server up.
func (p *Source) mayAsk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	loads := p.name == "Ollama" && p.model == "" // a probe would load a model
	return p.ready && !p.full && !loads
}

// ask sends one probe and waits for its end.
func (p *Source) ask(ctx context.Context, sink event.Sink) error {
	if err := p.dial(ctx, sink); err != nil {
		return err
	}
	seed := 1 + uint64(rand.Int32N(1<<31-2))
	p.opt.Shared.begin(seed)
	handle, err := p.next.client.Submit(runtime.Request{
		Text: prompt, Label: Label, Probe: true, MaxTokens: Tokens, IgnoreEOS: true, Params: runtime.Params{Seed: seed},
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done(): // hanging up cancels it
		return ctx.Err()
	case <-time.After(p.last):
		return errEndless
	case <-handle.Done():
		return handle.Result().Err
	}
}

// dial finds out how the server takes requests, unless that is known.
func (p *Source) dial(ctx context.Context, sink event.Sink) error {
	model := p.asked()
	if p.next != nil && p.next.model == model {
		return nil
	}
	p.hangUp()
	client, err := api.Dial(ctx, api.Options{Address: p.opt.Address, Key: p.opt.Key, Model: model, Clock: p.opt.Clock, Silence: silence})
	if err != nil {
		return fmt.Errorf("probe server: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	l := &link{client: client, model: model, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		_ = client.Run(ctx, &marked{sink: sink, shared: p.opt.Shared}) // it ends with ctx alone
	}()
	p.next = l
	return nil
}

func (p *Source) hangUp() {
	if l := p.next; l != nil {
		l.stop()
		<-l.done
		p.next = nil
	}
}

// asked is the model that is asked for, "" for the server's only one.
func (p *Source) asked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opt.Model != "" || p.many {
		return p.opt.Model
	}
	return p.model
}
