package host

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	llmruntime "github.com/llmtop/llmtop/runtime/engine"
)

// fakeReader counts its calls. A sample takes cost.
type fakeReader struct {
	took          time.Duration
	resets, reads int
	lost          bool
}

func (r *fakeReader) reset() { r.resets++ }
func (*fakeReader) close()   {}

func (r *fakeReader) cost() time.Duration { return r.took }

func (r *fakeReader) read(interval, _ time.Duration) (event.Usage, bool) {
	r.reads++
	time.Sleep(r.took)
	return event.Usage{Interval: int64(interval)}, !r.lost
}

func request(id event.RequestID, s event.State) event.Event {
	return event.Event{Kind: event.KindRequest, Req: id, State: s}
}

// usageBench runs a sampler on a fake clock.
type usageBench struct {
	*UsageSampler
	reader *fakeReader
	mu     sync.Mutex
	got    []event.Event
}

func (b *usageBench) Emit(e event.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, e)
}

func benchUsage(t *testing.T, f func(b *usageBench)) {
	synctest.Test(t, func(t *testing.T) {
		clock := llmruntime.NewClockSince(time.Second)
		b := &usageBench{UsageSampler: NewUsageSampler(UsageOptions{Clock: clock}), reader: new(fakeReader)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.run(ctx, b, b.reader) }()
		synctest.Wait()
		f(b)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// after sleeps, and waits until the sampler sleeps, too.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestUsageWhileRequestsRun checks that samples are taken while requests run, without gaps, and none otherwise: not even a
// timer fires.
func TestUsageWhileRequestsRun(t *testing.T) {
	benchUsage(t, func(b *usageBench) {
		after(time.Hour)
		if b.reader.reads != 0 {
			t.Errorf("%d samples without a request", b.reader.reads)
		}
		b.UsageSampler.Emit(request(1, event.StateQueued))
		b.UsageSampler.Emit(request(2, event.StateQueued))
		after(95 * time.Millisecond)
		b.UsageSampler.Emit(request(1, event.StateFinished))
		after(10 * time.Millisecond)
		b.UsageSampler.Emit(request(2, event.StateFailed))
		after(0)
		var sum time.Duration
		for _, e := range b.got {
			sum += time.Duration(e.Data.(*event.Usage).Interval)
		}
		if len(b.got) != 6 || sum != 105*time.Millisecond || b.reader.resets != 1 {
			t.Errorf("%d samples over %v, want 6 over 105ms", len(b.got), sum)
		}
		after(time.Hour)
		b.UsageSampler.Emit(request(3, event.StateQueued))
		after(25 * time.Millisecond)
		if last := b.got[len(b.got)-1].Data.(*event.Usage).Interval; len(b.got) != 7 || last != int64(20*time.Millisecond) || b.reader.resets != 2 {
			t.Errorf("after a pause %d samples, the last over %d ns", len(b.got), last)
		}
	})
}

// TestUsageInterval checks that samples follow the tokens within bounds, cost little, and leave nothing out at the end.
func TestUsageInterval(t *testing.T) {
	for name, c := range map[string]struct {
		gap, cost time.Duration
		most      int // samples in 2 s
	}{
		"fast tokens":    {time.Millisecond, 0, 101},
		"one per token":  {50 * time.Millisecond, 0, 42},
		"slow tokens":    {700 * time.Millisecond, 0, 50},
		"costly samples": {time.Millisecond, time.Millisecond, 12},
	} {
		t.Run(name, func(t *testing.T) {
			benchUsage(t, func(b *usageBench) {
				b.reader.took = c.cost
				b.UsageSampler.Emit(request(1, event.StateQueued))
				for began := time.Now(); time.Since(began) < 2*time.Second; after(c.gap) {
					b.UsageSampler.Emit(event.Event{Kind: event.KindToken, At: b.opt.Clock.Now(), Req: 1})
				}
				if len(b.got) > c.most || len(b.got) < c.most*3/4 {
					t.Errorf("%d samples, want about %d", len(b.got), c.most)
				}
			})
		})
	}
}

// TestUsageOfServers checks that polled servers count as busy while they report requests, and that requests of an engine
// that is gone do not.
func TestUsageOfServers(t *testing.T) {
	benchUsage(t, func(b *usageBench) {
		for i, c := range []struct {
			data any
			kind event.Kind
			busy bool
		}{
			{&event.Aggregates{Running: event.ReportedValue(2)}, event.KindAggregates, true},
			{&event.Aggregates{}, event.KindAggregates, false},
			{&event.Aggregates{Running: event.ReportedValue(1)}, event.KindAggregates, true},
			{&event.EngineInfo{Remote: event.Remote{Link: event.LinkDisconnected}}, event.KindEngine, false},
			{&event.Aggregates{Running: event.ReportedValue(1)}, event.KindAggregates, true},
			{&event.EngineInfo{Remote: event.Remote{Link: event.LinkRefused}}, event.KindEngine, false},
			{&event.EngineInfo{State: event.EngineLoading}, event.KindEngine, true},
			{&event.EngineInfo{State: event.EngineReady}, event.KindEngine, false},
		} {
			b.UsageSampler.Emit(event.Event{Kind: c.kind, Data: c.data})
			if busy, _ := b.state(); busy != c.busy {
				t.Errorf("event %d: busy %v", i, busy)
			}
		}
		b.reader.lost = true
		b.UsageSampler.Emit(request(1, event.StateDispatched))
		after(time.Second)
		if len(b.got) != 0 {
			t.Errorf("%d samples of a process that cannot be read", len(b.got))
		}
	})
}

// TestUsageRun checks that Run ends with its context, busy or not, and leaves no goroutine.
func TestUsageRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, busy := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		s := NewUsageSampler(UsageOptions{Clock: llmruntime.NewClock()})
		if busy {
			s.Emit(request(1, event.StateQueued))
		}
		stop()
		if err := s.Run(ctx, event.Tee{}); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkUsageEmit is what following a token costs the engine.
func BenchmarkUsageEmit(b *testing.B) {
	s := NewUsageSampler(UsageOptions{Clock: llmruntime.NewClock()})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Emit(event.Event{Kind: event.KindToken, At: event.Time(i), Req: 1})
	}
}
