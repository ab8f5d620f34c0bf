package runtime

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Options configures a Scheduler. Sampler is required; the zero value of the rest is a sensible default.
type Options struct {
	Clock   Clock                                  // shared with the other sources; zero: one that starts now
	Sampler func(p Params, vocabulary int) Sampler // builds the sampler of one request
	Engine  event.Engine                           // what is known before the engine is loaded: its name, whether it has CapSample
	Hooks   Hooks
	Pace    float64 // tokens/s each request is held to; 0: flat out
	Queue   int     // requests that may wait; 0: DefaultQueue
	Mixed   int     // prompt tokens in a batch that also decodes; 0: DefaultMixed
	Reuse   bool    // a prompt that begins like what a slot still holds goes on from there, in engines that are Keepers
}

const (
	// DefaultQueue is how many requests may wait for a slot.
	DefaultQueue = 64
	// DefaultMixed bounds what a prompt adds to the gap between the tokens of the requests beside it.
	DefaultMixed = 64
)

// Load opens an engine. It runs on the scheduler's goroutine and reports each stage as it ends.
type Load func(ctx context.Context, report func(LoadStage)) (Engine, error)

// LoadStage is one part of a model load.
type LoadStage struct {
	Stage event.Stage
	Name  string // of a stage that is StageNone: the engine's own word
	Start time.Time
	Dur   time.Duration
}

// Loaded is the Load of an engine that is already there.
func Loaded(e Engine) Load {
	return func(context.Context, func(LoadStage)) (Engine, error) { return e, nil }
}

// Scheduler runs requests on an engine: a bounded queue, and as many at a time as the engine has slots. Its methods may be
// called from any goroutine; the engine is driven by the one that calls Run.
type Scheduler struct {
	load  Load
	opt   Options
	clock Clock

	wake    chan struct{} // holds a token when changed was set
	changed atomic.Bool   // settings, queue or cancellations differ from what the driver last saw
	active  atomic.Int32  // requests that have not ended
	handles sync.Map      // of them, by RequestID
	ready   atomic.Pointer[driver]

	mu      sync.Mutex // guards what follows; taken before nothing else
	sink    event.Sink // nil before Run
	queue   []*Handle  // oldest first
	last    event.RequestID
	loading bool // the model is not loaded yet
	hooks   Hooks
	pace    float64
	paused  bool
	stopped error // set once Run has ended
}

// New prepares a scheduler for the engine that load opens. Nothing happens until Run, but requests may be submitted.
func New(load Load, opt Options) *Scheduler {
	if opt.Clock == (Clock{}) {
		opt.Clock = NewClock()
	}
	if opt.Engine.PID == 0 {
		opt.Engine.PID = os.Getpid()
	}
	if opt.Queue <= 0 {
		opt.Queue = DefaultQueue
	}
	if opt.Mixed <= 0 {
		opt.Mixed = DefaultMixed
	}
	return &Scheduler{
		load: load, opt: opt, clock: opt.Clock, hooks: opt.Hooks, pace: opt.Pace,
		wake: make(chan struct{}, 1), loading: true,
	}
}

// Submit queues a request. Errors: ErrEmptyPrompt, ErrQueueFull, ErrStopped. A prompt that turns out to be too long fails the
// request when it is dispatched, since only then it is tokenized.
func (s *Scheduler) Submit(r Request) (*Handle, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("submit request: %w", err)
	}
	r.IDs = append([]int32(nil), r.IDs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped != nil:
		return nil, fmt.Errorf("submit request: %w", s.stopped)
	case len(s.queue) >= s.opt.Queue:
		return nil, fmt.Errorf("submit request: %w (%d are waiting)", ErrQueueFull, len(s.queue))
	}
	s.last++
	h := &Handle{
		ID: s.last, scheduler: s, request: r, done: make(chan struct{}),
		enqueued: s.clock.Now(),
		cold:     s.loading || s.last == 1,
	}
	s.queue = append(s.queue, h)
	s.active.Add(1)
	s.handles.Store(h.ID, h)
	if s.sink != nil {
		s.announce(h)
	}
	s.poke()
	return h, nil
}

// announce emits that a request was queued. The caller holds mu.
func (s *Scheduler) announce(h *Handle) {
	p := &event.Request{
		Group: h.request.Group, Label: h.request.Label, MaxTokens: h.request.MaxTokens, Cold: h.cold, Probe: h.request.Probe,
	}
	if h.request.SendText {
		p.Prompt = h.request.Text
	}
	s.sink.Emit(event.Event{Kind: event.KindRequest, At: h.enqueued, Req: h.ID, State: event.StateQueued, Layer: -1, Data: p})
}

// finish ends a request. The caller is the driver, or holds mu and has taken it out of the queue.
func (s *Scheduler) finish(h *Handle, r Result) {
	h.result = r
	if s.sink != nil {
		outcome := r.Outcome
		s.sink.Emit(event.Event{
			Kind: event.KindRequest, At: s.clock.Now(), Req: h.ID, State: r.State, Layer: -1, Data: &outcome,
		})
	}
	s.active.Add(-1)
	s.handles.Delete(h.ID)
	close(h.done)
}

// poke makes the driver look at settings, queue and cancellations before its next batch.
func (s *Scheduler) poke() {
	s.changed.Store(true)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// SetPace holds each request to so many tokens/s from now on; 0 is flat out.
func (s *Scheduler) SetPace(tokensPerSecond float64) {
	s.set(func() { s.pace = max(tokensPerSecond, 0) })
}

// SetHooks changes what the engine measures, from the next batch on.
func (s *Scheduler) SetHooks(h Hooks) { s.set(func() { s.hooks = h }) }

// ChangeHooks changes a part of what the engine measures, from the next batch on. change must not call the scheduler.
func (s *Scheduler) ChangeHooks(change func(h *Hooks)) { s.set(func() { change(&s.hooks) }) }

// Samples reports whether the engine can measure in one of every so many passes, which is known before it is loaded; see Hooks.Every.
func (s *Scheduler) Samples() bool { return s.opt.Engine.Caps.Has(event.CapSample) }

// Pause stops the engine after the batch in progress until Resume. Time spent paused counts as pacing.
func (s *Scheduler) Pause() { s.set(func() { s.paused = true }) }

// Resume lets the engine go on.
func (s *Scheduler) Resume() { s.set(func() { s.paused = false }) }

func (s *Scheduler) set(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.poke()
}

// Cancel ends a request by its id; see Handle.Cancel. One that has ended already is left alone.
func (s *Scheduler) Cancel(id event.RequestID) {
	if h, ok := s.handles.Load(id); ok {
		h.(*Handle).Cancel()
	}
}

// Busy reports whether any request waits or runs.
func (s *Scheduler) Busy() bool { return s.active.Load() > 0 }

// Threads are the ids of the operating system's threads that compute for the engine, each once: those of a Threaded engine, and
// the thread of Run, which leads the forward passes and samples. It is nil where not all of them are known, and unless a loaded
// engine runs: what is left of the process's CPU without some of them would be taken for work outside the engine.
func (s *Scheduler) Threads() []int {
	d := s.ready.Load()
	if d == nil || d.thread == 0 {
		return nil
	}
	e, ok := d.engine.(Threaded)
	if !ok {
		return nil
	}
	workers := e.Threads()
	if workers == nil {
		return nil
	}
	ids := append(slices.Clone(workers), d.thread)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// stop refuses further requests and ends those that are left: all that wait, in their order, and one over whose dispatch or
// release the engine fell.
func (s *Scheduler) stop(r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = ErrStopped
	if r.Err != nil {
		s.stopped = fmt.Errorf("%w: %w", ErrStopped, r.Err)
	}
	for _, h := range s.queue {
		s.finish(h, r)
	}
	s.queue = nil
	s.handles.Range(func(_, h any) bool {
		s.finish(h.(*Handle), r)
		return true
	})
}
