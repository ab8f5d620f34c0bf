package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// Options configures a Scheduler. Sampler is required; the zero value of the rest is a sensible default.
type Options struct {
	Clock   Clock                                  // shared with the other sources; zero: one that starts now
	Sampler func(p Params, vocabulary int) Sampler // builds the sampler of one request
	Engine  event.EngineInfo                       // available before the load: name, PID, CapSample
	Hooks   Hooks
	Pace    float64 // tokens/s per request; 0: unlimited
	Queue   int     // maximum number of waiting requests; 0: DefaultQueue
	Mixed   int     // maximum number of prompt tokens in a batch that also decodes; 0: DefaultMixed
	Reuse   bool    // reuse the common prefix of a prompt and a cached sequence
}

const (
	// DefaultQueue is the default number of requests that may wait for a slot.
	DefaultQueue = 64
	// DefaultMixed bounds how much a prompt delays the next token of concurrent requests.
	DefaultMixed = 64
)

// Load opens an engine. It runs on the scheduler's goroutine and reports each stage as it ends.
type Load func(ctx context.Context, report func(LoadStage)) (Engine, error)

// LoadStage is one part of a model load.
type LoadStage struct {
	Stage event.Stage
	Name  string // the engine's own name of the stage, if Stage is StageNone
	Start time.Time
	Dur   time.Duration
}

// Scheduler runs requests on an engine: it has a bounded queue and runs as many requests at a time as the engine has
// slots. Its methods may be called from any goroutine; only the goroutine of Run drives the engine.
type Scheduler struct {
	load  Load
	opt   Options
	clock Clock

	wake    chan struct{} // holds a token after changed was set
	changed atomic.Bool   // settings, queue or cancellations changed since the driver last read them
	active  atomic.Int32  // requests that have not ended
	handles sync.Map      // active *Handle by RequestID
	ready   atomic.Pointer[driver]
	prompts *prompts.History // nil: prompts are not reused

	mu      sync.Mutex // guards the fields below; never locked while another lock is held
	sink    event.Sink // nil before Run
	queue   []*Handle  // oldest first
	last    event.RequestID
	hooks   Hooks
	pace    float64
	paused  bool
	stopped error // set once Run has ended
}

// New prepares a scheduler for the engine that load opens. The engine is opened by Run; requests may be submitted
// before.
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
	s := &Scheduler{
		load: load, opt: opt, clock: opt.Clock, hooks: opt.Hooks, pace: opt.Pace,
		wake: make(chan struct{}, 1),
	}
	if opt.Reuse {
		s.prompts = prompts.NewHistory()
	}
	return s
}

// Submit queues a request. Errors: ErrEmptyPrompt, ErrQueueFull, ErrStopped. A prompt that is too long fails when it is
// dispatched, because it is tokenized only then.
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
		cold:     s.last == 1,
	}
	s.queue = append(s.queue, h)
	s.active.Add(1)
	s.handles.Store(h.ID, h)
	if s.sink != nil {
		s.announce(h)
	}
	s.wakeDriver()
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

// finish ends a request. The caller is the driver, or holds mu and has removed the request from the queue.
func (s *Scheduler) finish(h *Handle, r Result) {
	r.Reuse = s.reuseOf(h, r.State)
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

// wakeDriver makes the driver read settings, queue and cancellations again before its next batch.
func (s *Scheduler) wakeDriver() {
	s.changed.Store(true)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// SetPace limits each request to the given tokens/s from now on; 0 is unlimited.
func (s *Scheduler) SetPace(tokensPerSecond float64) {
	s.set(func() { s.pace = max(tokensPerSecond, 0) })
}

// SetHooks sets what the engine measures, from the next batch on.
func (s *Scheduler) SetHooks(h Hooks) { s.set(func() { s.hooks = h }) }

// ChangeHooks changes some of the hooks, from the next batch on. change must not call the scheduler.
func (s *Scheduler) ChangeHooks(change func(h *Hooks)) { s.set(func() { change(&s.hooks) }) }

// Samples reports whether the engine can measure a sample of its passes (see Hooks.Every). It is valid before the load.
func (s *Scheduler) Samples() bool { return s.opt.Engine.Caps.Has(event.CapSample) }

// Pause stops the engine after the current batch until Resume. Paused time counts as pacing.
func (s *Scheduler) Pause() { s.set(func() { s.paused = true }) }

// Resume ends a Pause.
func (s *Scheduler) Resume() { s.set(func() { s.paused = false }) }

func (s *Scheduler) set(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.wakeDriver()
}

// Cancel ends a request by its id; see Handle.Cancel. It does nothing if the request has ended.
func (s *Scheduler) Cancel(id event.RequestID) {
	if h, ok := s.handles.Load(id); ok {
		h.(*Handle).Cancel()
	}
}

// Busy reports whether any request waits or runs.
func (s *Scheduler) Busy() bool { return s.active.Load() > 0 }

// Threads returns the ids of the operating system threads that compute for the engine, each once: those of the
// engine and the thread of Run, which leads forward passes and samples. It returns nil unless a loaded engine runs and
// all its threads are available: with an incomplete list, the engine's CPU time would be attributed to work outside the
// engine.
func (s *Scheduler) Threads() []int {
	d := s.ready.Load()
	if d == nil || d.thread == 0 {
		return nil
	}
	workers := d.engine.Threads()
	if workers == nil {
		return nil
	}
	ids := append(slices.Clone(workers), d.thread)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// stop rejects further requests and ends the remaining ones: those in the queue in order, and one whose dispatch or
// release made the engine panic.
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
