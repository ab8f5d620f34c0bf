package store

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// The bounds of the store, each with the memory that it allows.
const (
	MaxOpen     = 10_000  // open requests: 5.6 KB each, 53 MB; above MaxRequests their lists shrink, see ring.bound
	MaxRequests = 256     // ended requests with per-token data: up to 150 KB each, 38 MB
	MaxEarlier  = 8192    // ended requests before those, without per-token data: 1 KB each, 8 MB
	MaxKept     = 1 << 14 // the same with Options.Keep: the first ones
	MaxGaps     = 2048    // gaps per request, and marks of stalls: 8 and 4 bytes each, 24 KB
	MaxTokens   = 512     // tokens per request: 160 bytes each and their detail
	MaxSpans    = 64      // stages per request: 64 bytes each, 4 KB
	MaxText     = 8192    // bytes of generated text, and of the prompt, per request
	MaxStalls   = 64      // stalls per request, the longest, and per session, the newest: 64 bytes each, 4 KB
	MaxGroups   = 64      // LoRA adapters or tenants: 64 bytes each, 4 KB
	MaxLog      = 100     // lines of the engine's log: up to MaxLine bytes each, 100 KB
	MaxLine     = 1024    // bytes of a log line, label, group or token text
	MaxName     = 64      // bytes of the name of an engine-specific stage or histogram
	SeriesLen   = 600     // seconds of a time series: 500 bytes each, 300 KB
	MaxLayers   = 512     // layers whose prompt processing is kept per request: 24 bytes each, 12 KB
)

// DefaultKeep is the usual Options.Keep.
const DefaultKeep = 256 << 20

// drainInterval is how long an event may wait in the queue if nobody takes snapshots and the queue does not fill.
const drainInterval = 5 * time.Second

// Bounds of stamps: sums of durations do not overflow, and a clock that runs ahead does no lasting harm.
const (
	maxDur   = int64(1) << 50          // ns, 13 days
	maxAhead = event.Time(time.Second) // a stamp may exceed the present by 1 s
)

// beforeClock stands for every time before the clock's epoch. A source that is attached late reports that something
// happened before, but not when.
const beforeClock = event.Time(1)

// clampTime clamps a stamp to beforeClock..now+maxAhead. 0 is reserved for "has not happened".
func clampTime(at, now event.Time) event.Time {
	if at < 0 {
		return beforeClock
	}
	return min(max(at, beforeClock+1), now+maxAhead)
}

// snapshotMaxAge is how long a snapshot stays valid without events: values that depend on the time alone change once a
// second. It is slightly longer than a second, so that host samples, one a second, renew it.
const snapshotMaxAge = 1200 * time.Millisecond

// Options configure a Store.
type Options struct {
	Now     func() event.Time // clock that the sources stamp with
	Wall    func() time.Time  // wall clock; nil: time.Now
	Targets Targets           // what requests are checked against; TTFT 0: DefaultTTFTTarget, unless DefaultTTFT is set
	Past    *PastBudget       // memory for snapshots of the past; nil: none are kept
	// Keep is how many bytes of tokens the store keeps of whole requests, for a report: DefaultKeep, or 0 to keep those of
	// the newest requests only. Requests without room are as with 0.
	Keep  int
	Queue int // capacity of the event queue; 0: event.DefaultQueue
	// OnRequest is called with each request that has ended. It runs with the store locked: it must not call Snapshot or
	// Drain.
	OnRequest func(*Request)
	// OnGaps is called with n gaps of ns each between the last tokens of a request, in the same way. It must not keep the
	// request.
	OnGaps func(r *Request, ns int64, n int)
}

// Store aggregates events into snapshots. Emit only queues and may be called from any goroutine. Run and Snapshot apply
// the queued events.
type Store struct {
	opt   Options
	queue *event.Queue[event.Event]

	mu           sync.Mutex // guards what follows; producers never wait for it
	batch        []event.Event
	state        state
	lastSnapshot *Snapshot
}

// New returns an empty store.
func New(opt Options) *Store {
	if opt.Wall == nil {
		opt.Wall = time.Now
	}
	if opt.Targets.TTFT == 0 && !opt.Targets.DefaultTTFT {
		opt.Targets.TTFT, opt.Targets.DefaultTTFT = DefaultTTFTTarget, true
	}
	if opt.Queue <= 0 {
		opt.Queue = event.DefaultQueue
	}
	s := &Store{
		opt: opt, queue: event.NewQueue[event.Event](opt.Queue),
		state: state{
			engine: new(event.EngineInfo), targets: opt.Targets, onRequest: opt.OnRequest, onGaps: opt.OnGaps, counts: counts{groups: make(map[string]*groupSum)},
			requests:   ring{keep: opt.Keep},
			aggregates: aggregates{keep: SeriesLen},
		},
	}
	if b := opt.Past; b != nil {
		s.state.past = b.join(s)
		if b.total > MaxPastBytes { // many stores: each keeps what its windows need
			s.state.aggregates.keep = 0
		}
	}
	return s
}

// DefaultTTFTTarget is the TTFT target of a 512-token prompt. Without a target, first tokens are explained from this time on.
const DefaultTTFTTarget = 200 * time.Millisecond

// now returns the present on the sources' clock, clamped to the times that events may have.
func (s *Store) now() event.Time { return min(max(s.opt.Now(), 0), event.MaxTime) }

// Emit implements event.Sink.
func (s *Store) Emit(e event.Event) { s.queue.Put(e, e.Kind) }

// Changed receives after the first event since the last Snapshot.
func (s *Store) Changed() <-chan struct{} { return s.queue.NonEmpty() }

// Run applies events until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.Drain()
			return nil
		case <-tick.C:
		case <-s.queue.HalfFull():
		}
		s.Drain()
	}
}

// Patient returns a sink before sink, which leads to the store, for a source that may wait because what it has not read
// is kept elsewhere. It applies events before the queue is full, so that none is dropped. It is not safe for concurrent use.
func (s *Store) Patient(sink event.Sink) event.Sink {
	emitted := 0 // since the last call of drain
	return event.SinkFunc(func(e event.Event) {
		sink.Emit(e)
		if emitted++; emitted >= max(s.opt.Queue/4, 1) {
			emitted = 0
			s.Drain()
		}
	})
}

// Drain applies the queued events at once, for producers that emit faster than Run is scheduled.
func (s *Store) Drain() {
	if s.queue.Empty() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch, s.state.queueDrops = s.queue.Swap(s.batch)
	if len(s.batch) == 0 {
		return
	}
	now := max(s.now(), 1)
	for i := range s.batch {
		e := &s.batch[i]
		e.At = clampTime(e.At, now)
		e.Dur = min(max(e.Dur, 0), maxDur)
		s.state.apply(e)
	}
	clear(s.batch) // releases what the events refer to
}
