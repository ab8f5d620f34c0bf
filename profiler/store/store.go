package store

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// The bounds of the store, each with the most memory that it stands for.
const (
	MaxRequests = 256  // requests kept; at most about 100 KB each with all rings full
	MaxPast     = 8192 // ended requests kept after that without what is per token, about 1 KB each
	MaxGaps     = 2048 // gaps of one request, 16 KB
	MaxTokens   = 512  // tokens of one request, 140 bytes each: 70 KB
	MaxSpans    = 64   // stages of one request, 64 bytes each
	MaxText     = 8192 // bytes of text of one request
	MaxStalls   = 64   // 64 bytes each
	MaxGroups   = 64   // 64 bytes each
	MaxLog      = 100  // lines, cut at MaxLine
	MaxLine     = 1024
	MaxName     = 64  // bytes of the name of an engine's own stage
	SeriesLen   = 600 // seconds of course, 500 bytes each
	MaxLayers   = 512 // of a model whose prompt processing is kept layer by layer, 24 bytes each
)

// drainEvery is how long an event may wait in the queue when nobody asks for snapshots, which empty it, and it does not fill.
const drainEvery = 5 * time.Second

// What a stamp may say at most: sums of durations do not overflow, and a clock that is ahead does no lasting harm.
const (
	maxDur = int64(1) << 50 // ns, 13 days
	ahead  = event.Time(time.Second)
)

// before stands for every moment before the clock began, of which a source that is joined late tells: that it was then, and not when.
const before = event.Time(1)

// stamp is a time as it is kept: 0 stands for what has not happened.
func stamp(at, now event.Time) event.Time {
	if at < 0 {
		return before
	}
	return min(max(at, before+1), now+ahead)
}

// keepFor is how long a snapshot stands while no event comes: what only time changes moves by the second. It is a little longer than
// a second, so that samples of the host, one a second, are what renews it.
const keepFor = 1200 * time.Millisecond

// Options configure a Store.
type Options struct {
	Now     func() event.Time // the clock that the sources stamp with
	Wall    func() time.Time
	Targets Targets // what requests are held against; TTFT 0: DefaultTTFTTarget
	// History is how many bytes of what happened are kept, so that Travel can go back to it; 0: none. See DefaultHistory.
	History int
	// Share is what stands in for History where many stores remember together; nil: this one has its own.
	Share *Share
	Queue int // events that wait for the next snapshot at most; 0: event.DefaultQueue
	// OnRequest is told of each request that has ended, with all its metrics. It runs on the store's goroutine.
	OnRequest func(*Request)
}

// Store keeps what happened. Emit may be called from any goroutine; it only queues. Events are applied by Run, and by Snapshot.
type Store struct {
	opt   Options
	queue *event.Queue

	mu      sync.Mutex // guards what follows; never held while a producer emits
	batch   []event.Event
	state   state
	last    *Snapshot // handed out
	history *history  // nil: none is kept
}

// state is all that events have told. What is added to it and written in place has to be copied in freeze and thaw.
type state struct {
	version   uint64
	started   event.Time
	begun     bool
	targets   Targets
	onRequest func(*Request)

	engine   event.Engine
	model    event.Model
	load     []Span
	loadTook int64      // ns of the last load
	lost     event.Lost // of the sources
	dropped  event.Lost // by the queue

	requests ring
	counts   Counts
	groups   map[string]*groupSum
	latency  latency
	rates    rates
	kv       KV
	pins     metric.Histogram
	experts  *experts
	newest   newest
	told     *told // nil: no token has told of its picks
	untold   bool  // what they have told was not kept, so that what they tell from now on would be a part
	ops      *event.Ops
	counters *event.Counters // the engine's own, as it told them last; nil: it has not
	host     Host
	reported *reported // nil: the engine sends no reports
	polled   bool      // the last report told of slots
	gaps     gapSum    // since the last sample of the machine
	log      []LogLine
	judge    verdict.Judge
}

// New makes an empty store.
func New(opt Options) *Store {
	if opt.Wall == nil {
		opt.Wall = time.Now
	}
	if opt.Targets.TTFT == 0 {
		opt.Targets.TTFT = DefaultTTFTTarget
	}
	if opt.Queue <= 0 {
		opt.Queue = event.DefaultQueue
	}
	return &Store{
		opt: opt, queue: event.NewQueue(opt.Queue),
		state:   state{targets: opt.Targets, onRequest: opt.OnRequest, groups: make(map[string]*groupSum), latency: latency{distributions: new(distributions)}},
		history: newHistory(opt.History, opt.Share),
	}
}

// DefaultTTFTTarget is what the TTFT of a 512-token prompt is held against.
const DefaultTTFTTarget = 200 * time.Millisecond

// Emit implements event.Sink.
func (s *Store) Emit(e event.Event) { s.queue.Emit(e) }

// Changed receives when something has been emitted since the last Snapshot.
func (s *Store) Changed() <-chan struct{} { return s.queue.Some() }

// Run applies what is emitted until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.drain()
			return nil
		case <-tick.C:
		case <-s.queue.Half():
		}
		s.drain()
	}
}

// Drain applies what has been emitted, for those who emit faster than Run is scheduled.
func (s *Store) Drain() { s.drain() }

func (s *Store) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch, s.state.dropped = s.queue.Swap(s.batch)
	if len(s.batch) == 0 {
		return
	}
	now := max(s.opt.Now(), 1)
	s.history.begin(&s.state, now, s.opt.Wall)
	for i := range s.batch {
		e := &s.batch[i]
		e.At = stamp(e.At, now)
		e.Dur = min(max(e.Dur, 0), maxDur)
		s.history.keep(&s.state, e)
		s.state.apply(e)
	}
}
