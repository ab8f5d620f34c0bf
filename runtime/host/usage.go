package host

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

const (
	// The interval of usage samples is the mean time between tokens, within these bounds.
	minUsageInterval = 20 * time.Millisecond
	maxUsageInterval = 100 * time.Millisecond
	// usageShare bounds the cost: the interval is at least usageShare times as long as taking a sample.
	usageShare = 200
	// maxUsageRequests is the number of running requests that are followed.
	maxUsageRequests = 10_000
)

// UsageOptions configure a UsageSampler.
type UsageOptions struct {
	Clock engine.Clock
	// Processes returns the processes of the engine, the main one first; none if they are unknown. nil: the engine runs in
	// this process.
	Processes func() []int
	// EngineThreads returns the threads that compute for an engine in this process, as for Options. Without them all threads
	// of the process count as the engine's.
	EngineThreads func() []int
}

// UsageSampler samples what an engine's threads do while its model loads and its requests run, and nothing otherwise. It
// is a sink for the events of the engine, from which it knows when these are, and a source of usage events.
type UsageSampler struct {
	opt  UsageOptions
	wake chan struct{} // holds a token after busy has changed

	mu       sync.Mutex // guards the fields below
	requests map[event.RequestID]struct{}
	loading  bool       // the model is being loaded
	polled   bool       // a server reports running requests
	busy     bool       // any of these
	last     event.Time // of a token
	gap      float64    // ns between tokens, a moving mean; 0 unknown
}

// usageReader reads the usage of an engine between two calls. The first call after reset starts an interval.
type usageReader interface {
	// read returns the usage over the interval; false if no process of the engine can be read. late is how much later than
	// planned the interval ends.
	read(interval, late time.Duration) (event.Usage, bool)
	// cost returns the CPU time that the last read took.
	cost() time.Duration
	reset()
	close()
}

// NewUsageSampler prepares a UsageSampler. It runs on Linux; on other systems it reports nothing.
func NewUsageSampler(opt UsageOptions) *UsageSampler {
	return &UsageSampler{opt: opt, wake: make(chan struct{}, 1), requests: make(map[event.RequestID]struct{})}
}

// Emit implements event.Sink for the events of the engine.
func (s *UsageSampler) Emit(e event.Event) {
	switch e.Kind {
	case event.KindToken, event.KindRequest, event.KindAggregates, event.KindEngine:
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case event.KindToken:
		if gap := min(float64(e.At-s.last), float64(maxUsageInterval)); s.last != 0 && gap > 0 {
			if s.gap == 0 {
				s.gap = gap
			}
			s.gap += (gap - s.gap) / 8
		}
		s.last = e.At
		return
	case event.KindRequest:
		if e.State.Final() {
			delete(s.requests, e.Req)
		} else if len(s.requests) < maxUsageRequests {
			s.requests[e.Req] = struct{}{}
		}
	case event.KindAggregates:
		if p, ok := e.Data.(*event.Aggregates); ok && p != nil {
			s.polled = p.Running.OK() && p.Running.V > 0
		}
	case event.KindEngine:
		p, ok := e.Data.(*event.EngineInfo)
		if !ok || p == nil {
			return
		}
		s.loading = p.State == event.EngineLoading
		if p.State == event.EngineFailed || p.State == event.EngineStopped || p.Remote.Link.Down() {
			clear(s.requests)
			s.polled = false
		}
	}
	if busy := s.loading || s.polled || len(s.requests) > 0; busy != s.busy {
		s.busy = busy
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// state reports whether the engine is busy, and the interval that suits their tokens.
func (s *UsageSampler) state() (busy bool, interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy, min(max(time.Duration(s.gap), minUsageInterval), maxUsageInterval)
}

// Run emits samples while the model loads and requests run, until ctx ends.
func (s *UsageSampler) Run(ctx context.Context, sink event.Sink) error {
	reader := newUsageReader(s.opt)
	if reader == nil {
		<-ctx.Done()
		return nil
	}
	defer reader.close()
	return s.run(ctx, sink, reader)
}

func (s *UsageSampler) run(ctx context.Context, sink event.Sink, reader usageReader) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var began, planned event.Time // began is 0 while not busy
	for {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-s.wake:
		case <-timer.C:
		}
		busy, interval := s.state()
		if !busy && began == 0 || ended && began == 0 {
			if ended {
				return nil
			}
			continue
		}
		now := s.opt.Clock.Now()
		if began == 0 {
			reader.reset()
		}
		u, ok := reader.read(time.Duration(now-began), time.Duration(now-planned))
		if ok && began != 0 && now > began {
			sink.Emit(event.Event{Kind: event.KindUsage, At: now, Layer: -1, Data: &u})
		}
		if ended {
			return nil
		}
		if began != 0 { // the first one lists the threads
			interval = max(interval, usageShare*reader.cost())
		}
		if began = now; !busy {
			began = 0
			continue
		}
		planned = s.opt.Clock.Now() + event.Time(interval) // the time that the sample took does not delay the next one
		timer.Reset(interval)
	}
}
