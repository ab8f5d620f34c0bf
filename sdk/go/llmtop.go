// Package llmtop shows an inference engine written in Go live in llmtop: it opens an event socket, and llmtop attach finds
// it. README.md has an engine with 5, 20 and 60 lines.
//
// All methods may be called from any goroutine, except those of one Request and one Step, which belong to one at a time.
// They never wait for a reader. On a nil Emitter they have no effect, so that an engine whose socket could not be opened
// continues.
package llmtop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Options configure an Emitter. Zero values are sensible defaults.
type Options struct {
	socket.Options             // token, control messages, text; Engine has version, device and slots
	Address        string      // "": where llmtop looks for engines; "unix:PATH", "tcp:HOST:PORT"
	Model          event.Model // already loaded; Path: its GGUF or safetensors file, or their folder, which llmtop on the same machine reads
}

// Emitter is an open event socket.
type Emitter struct {
	server *socket.Server
	clock  engine.Clock
	caps   atomic.Uint32
	ids    atomic.Uint64 // of the last request
	steps  atomic.Uint64 // of the last pass
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	info   event.EngineInfo
	picks  *event.Experts // nil: no model with experts
	counts map[string]float64
	picked bool // picks have changed
}

// Serve opens the event socket. Errors are those of socket.Listen.
func Serve(name string, o Options) (*Emitter, error) {
	if o.Address == "" {
		o.Address = socket.Address(name)
	}
	o.Clock = engine.NewClock()
	o.Engine.Name, o.Engine.Epoch, o.Engine.State = name, o.Clock.Epoch(), event.EngineReady
	o.Engine.Caps |= event.CapTokens | event.CapStages
	if o.Controller != nil {
		o.Engine.Caps |= o.Controller.Controls()
	}
	if o.Text {
		o.Engine.Caps |= event.CapText
	}
	server, err := socket.Listen(o.Address, o.Options)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", name, err)
	}
	top := &Emitter{server: server, clock: o.Clock, info: o.Engine, counts: map[string]float64{}}
	top.caps.Store(uint32(o.Engine.Caps))
	top.ctx, top.cancel = context.WithCancel(context.Background())
	if o.Model != (event.Model{}) {
		top.Model(o.Model, 0)
	}
	top.wait.Go(top.flush)
	return top, nil
}

// Address returns the address, in the form of llmtop attach.
func (top *Emitter) Address() string {
	if top == nil {
		return ""
	}
	return top.server.Address()
}

// Close sends what waits, says goodbye to the readers, and removes the socket.
func (top *Emitter) Close() error {
	if top == nil {
		return nil
	}
	top.cancel()
	top.wait.Wait()
	return top.server.Close()
}

// capsOf are the capabilities of an engine that emits a kind.
var capsOf = [event.NumKinds]event.Caps{
	event.KindStage: event.CapStages, event.KindToken: event.CapTokens, event.KindExperts: event.CapExperts, event.KindKV: event.CapKV,
	event.KindStep: event.CapSteps, event.KindHost: event.CapHost, event.KindCounters: event.CapCounters, event.KindOps: event.CapOps,
}

// Emit sends any other event, for example of KindOps, KindUsage, KindSpeculation, KindHost or KindLog. At 0 is now.
func (top *Emitter) Emit(e event.Event) {
	if top == nil {
		return
	}
	if e.At == 0 {
		e.At = top.clock.Now()
	}
	caps := capsOf[min(e.Kind, event.NumKinds-1)]
	if e.State == event.StateDispatched {
		caps |= event.CapQueue
	}
	if len(e.Picks) > 0 {
		caps |= event.CapPicks
	}
	if event.Caps(top.caps.Load())&caps != caps {
		top.Engine(func(info *event.EngineInfo) { info.Caps |= caps })
	}
	top.server.Emit(e)
}

// Engine changes the engine's description, for example its state.
func (top *Emitter) Engine(change func(*event.EngineInfo)) {
	if top == nil {
		return
	}
	top.mu.Lock()
	defer top.mu.Unlock()
	change(&top.info)
	top.caps.Store(uint32(top.info.Caps))
	info := top.info
	top.server.Emit(event.Event{Kind: event.KindEngine, At: top.clock.Now(), Layer: -1, Data: &info})
}

// Model reports that a model was loaded, and how long that took; 0: not reported.
func (top *Emitter) Model(m event.Model, took time.Duration) {
	if top == nil {
		return
	}
	top.mu.Lock()
	top.picks, top.picked = engine.NewPicks(m.Layers, m.Experts, m.ExpertsUsed), false
	top.mu.Unlock()
	top.Emit(event.Event{Kind: event.KindModel, Layer: -1, Dur: int64(took), Data: &m})
}

// Stage times work that belongs to no request, such as "model_load".
func (top *Emitter) Stage(name string, work func()) { top.stage(name, 0, work) }

func (top *Emitter) stage(name string, request event.RequestID, work func()) {
	began := time.Now()
	defer func() { top.staged(name, request, -1, 0, time.Now(), time.Since(began)) }()
	work()
}

func (top *Emitter) staged(name string, request event.RequestID, layer, tokens int, at time.Time, took time.Duration) {
	if top == nil {
		return
	}
	e := event.Event{Kind: event.KindStage, At: top.clock.At(at), Dur: int64(max(took, 0)), Req: request, Layer: int16(layer), N: int32(tokens)}
	var ok bool
	if e.Stage, ok = event.StageByName(name); !ok {
		e.Text = name
	}
	top.Emit(e)
}

// Picks counts the experts that the router of a layer picked, for prompts or while decoding. They are sent ten times a
// second. The model needs Layers, Experts and ExpertsUsed.
func (top *Emitter) Picks(prompt bool, layer int, experts []uint16) {
	if top == nil {
		return
	}
	top.mu.Lock()
	defer top.mu.Unlock()
	x := top.picks
	if x == nil || layer < 0 || layer >= x.Layers {
		return
	}
	table := x.Prompt
	if !prompt {
		table = x.Decode
	}
	for _, e := range experts {
		if int(e) < x.Experts {
			table[layer*x.Experts+int(e)]++
		}
	}
	top.picked = true
}

// KV reports the KV cache: tokens in use, and its size.
func (top *Emitter) KV(used, total int) {
	top.Emit(event.Event{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: int64(used), Total: int64(total)}})
}

// Count sets a counter of the engine, cumulative. The names in docs/event-protocol.md mean the same for all engines.
func (top *Emitter) Count(name string, value float64) {
	if top == nil {
		return
	}
	top.mu.Lock()
	top.counts[name] = value
	values := make([]event.Counter, 0, len(top.counts))
	for name, value := range top.counts {
		values = append(values, event.Counter{Name: name, Value: value})
	}
	top.mu.Unlock()
	slices.SortFunc(values, func(a, b event.Counter) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	top.Emit(event.Event{Kind: event.KindCounters, Layer: -1, Data: &event.Counters{Values: values}})
}

// Log sends a line of the engine's log.
func (top *Emitter) Log(format string, args ...any) {
	top.Emit(event.Event{Kind: event.KindLog, Layer: -1, Text: fmt.Sprintf(format, args...)})
}

// SampleHost samples the machine and this process once a second from now on. For engines on another machine: llmtop
// samples engines on its own.
func (top *Emitter) SampleHost() {
	if top == nil {
		return
	}
	sampler := host.New(host.Options{Clock: top.clock, NoRead: true})
	top.wait.Go(func() { _ = sampler.Run(top.ctx, event.SinkFunc(top.Emit)) }) // it cannot fail
}

// flush sends the picks ten times a second.
func (top *Emitter) flush() {
	tick := time.NewTicker(time.Second / 10)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			top.sendPicks()
		case <-top.ctx.Done():
			top.sendPicks()
			return
		}
	}
}

func (top *Emitter) sendPicks() {
	top.mu.Lock()
	x, picked := engine.CopyPicks(top.picks), top.picked
	top.picked = false
	top.mu.Unlock()
	if !picked {
		return
	}
	x.PromptTokens, x.DecodeTokens = tokensOf(x.Prompt, x), tokensOf(x.Decode, x)
	top.Emit(event.Event{Kind: event.KindExperts, Layer: -1, Data: x})
}

// tokensOf returns the tokens whose picks are counted: those of the layer with the most.
func tokensOf(picks []uint64, of *event.Experts) (most uint64) {
	for layer := range slices.Chunk(picks, max(of.Experts, 1)) {
		var sum uint64
		for _, n := range layer {
			sum += n
		}
		most = max(most, sum)
	}
	return most / uint64(max(of.Used, 1))
}

// Request is a request that has not ended.
type Request struct {
	ID   event.RequestID
	Out  int           // tokens so far
	Done event.Outcome // what is reported at the end: prompt tokens (0: unknown), cached ones, padding, reuse

	top    *Emitter
	passed bool // a pass over its whole prompt has begun
	ended  bool
}

// Request begins a request, queued now. prompt is its number of tokens, 0: unknown yet.
func (top *Emitter) Request(prompt int, about event.Request) *Request {
	r := &Request{top: top, Done: event.Outcome{Prompt: prompt, AnyCached: true}}
	if top != nil {
		r.ID = event.RequestID(top.ids.Add(1))
	}
	about.PromptTokens = prompt
	top.Emit(event.Event{Kind: event.KindRequest, Req: r.ID, State: event.StateQueued, Layer: -1, Data: &about})
	return r
}

// Dispatch says that the scheduler has started it: llmtop shows the time before as queue.
func (r *Request) Dispatch() {
	r.top.Emit(event.Event{Kind: event.KindRequest, Req: r.ID, State: event.StateDispatched, Layer: -1})
}

// Stage times work for the request, such as "tokenize".
func (r *Request) Stage(name string, work func()) { r.top.stage(name, r.ID, work) }

// Reuse says how many tokens of the prompt came from a cache, and where it stops to be the same as an earlier one.
func (r *Request) Reuse(cached int, from event.Reuse) {
	r.Done.Cached, r.Done.AnyCached, r.Done.Reuse = cached, false, from
}

// Token emits a token that a pass has made, which it ends; s may be nil.
func (r *Request) Token(id int32, s *Step) { r.TokenWith(event.Event{ID: id}, s) }

// TokenWith emits a token with more than its id: LogP, Text, Picks, Top, or N tokens with the same stamp.
func (r *Request) TokenWith(e event.Event, s *Step) {
	if r.top == nil {
		return
	}
	e.Kind, e.Req, e.Layer, e.Index, e.N = event.KindToken, r.ID, -1, int32(r.Out), max(e.N, 1)
	now := time.Now()
	if s != nil {
		s.End()
		e.Step = s.number
		if s.request == r || s.Decode == 1 && s.Prompt == 0 {
			e.Split.Sample = s.parts[5]
		}
		if r.Out == 0 && s.request == r && s.Prompt > 0 {
			r.top.staged("first_token", r.ID, -1, 0, now, now.Sub(s.body))
		}
	}
	e.At = r.top.clock.At(now)
	r.Out += int(e.N)
	r.top.Emit(e)
}

// Finish ends the request: why is "stop" if the model ended the text, "length" at the limit.
func (r *Request) Finish(why string) { r.end(event.StateFinished, why) }

// Cancel ends the request, which was cancelled.
func (r *Request) Cancel() { r.end(event.StateCancelled, "cancelled") }

// Fail ends the request, which has failed.
func (r *Request) Fail(err error) { r.end(event.StateFailed, err.Error()) }

// End ends a request that has not ended, to be deferred: with the error of its function it has failed, or was cancelled
// by its context; without, it has finished. A panic fails it, and goes on.
func (r *Request) End(err *error) {
	p := recover()
	switch {
	case p != nil:
		r.end(event.StateFailed, fmt.Sprint(p))
		panic(p)
	case err == nil || *err == nil:
		r.Finish("")
	case errors.Is(*err, context.Canceled):
		r.Cancel()
	default:
		r.Fail(*err)
	}
}

func (r *Request) end(state event.State, why string) {
	if r.ended {
		return
	}
	r.ended = true
	done := r.Done
	done.Reason, done.Generated = why, r.Out
	r.top.Emit(event.Event{Kind: event.KindRequest, Req: r.ID, State: state, Layer: -1, Data: &done})
}

// Step is a forward pass that is timed until its end. On an accelerator the pass, and each part, has to wait for the
// device, otherwise it measures only launches: leave parts out there.
type Step struct {
	Decode, Prompt int // its tokens; they may be set until the end

	top     *Emitter
	request *Request
	number  uint64
	began   time.Time
	body    time.Time // the end of its layers
	parts   [6]uint32 // ns
	ended   bool
}

// Step begins a forward pass over decode tokens and prompt tokens. r: the request, if it works for that one only: then
// its time is that request's prompt stage. Without both numbers it is a pass over the whole prompt of r before its first
// token, and then over one token.
func (top *Emitter) Step(decode, prompt int, r *Request) *Step {
	if r != nil && decode == 0 && prompt == 0 {
		switch {
		case r.Out > 0:
			decode = 1
		case !r.passed: // the parts of a prompt in several passes are unknown
			prompt, r.passed = max(r.Done.Prompt-r.Done.Cached, 0), true
		}
	}
	s := &Step{top: top, request: r, Decode: decode, Prompt: prompt, began: time.Now()}
	if top != nil {
		s.number = top.steps.Add(1)
	}
	return s
}

var partNames = [...]string{"embed", "attention", "router", "experts", "lm_head", "sample"}

// Part times a part of the pass: embed, attention, router, experts, lm_head or sample; any other name becomes a stage of
// its own. With a layer (from 0; -1: none), it is also a stage of the request. Sampling may follow the end of the pass.
func (s *Step) Part(name string, layer int, work func()) {
	began := time.Now()
	defer func() { s.timed(name, layer, time.Since(began)) }()
	work()
}

func (s *Step) timed(name string, layer int, took time.Duration) {
	var id event.RequestID
	if s.request != nil {
		id = s.request.ID
	}
	i := slices.Index(partNames[:], name)
	if i < 0 {
		s.top.staged(name, id, layer, 0, time.Now(), took)
		return
	}
	s.parts[i] += uint32(min(int64(took), 1<<32-1-int64(s.parts[i])))
	if layer >= 0 && s.Prompt > 0 && id != 0 {
		s.top.staged(name, id, layer, s.Prompt, time.Now(), took)
	}
}

// Fail ends a pass that has failed: it is reported without its numbers of tokens.
func (s *Step) Fail() {
	s.Decode, s.Prompt = 0, 0
	s.End()
}

// End ends the pass; ending it twice has no effect.
func (s *Step) End() {
	if s.ended {
		return
	}
	s.ended = true
	now, p := time.Now(), s.parts
	if s.body = now.Add(-time.Duration(p[4]) - time.Duration(p[5])); s.body.Before(s.began) { // the LM head and sampling come after the layers
		s.body = s.began
	}
	if s.top == nil {
		return
	}
	s.top.Emit(event.Event{
		Kind: event.KindStep, At: s.top.clock.At(now), Dur: int64(now.Sub(s.began)), Step: s.number, Layer: -1, N: int32(s.Decode), Prompt: int32(s.Prompt),
		Split: event.Split{Embed: p[0], Attention: p[1], Router: p[2], Experts: p[3], Head: p[4], Sample: p[5]},
	})
	if s.request == nil || s.Prompt <= 0 {
		return
	}
	embed := time.Duration(p[0])
	if embed > 0 {
		s.top.staged("embed", s.request.ID, -1, s.Prompt, s.began.Add(embed), embed)
	}
	s.top.staged("prompt", s.request.ID, -1, s.Prompt, s.body, s.body.Sub(s.began)-embed)
}
