package socket

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// BenchmarkEmit measures the cost of an event for the engine: without readers, with one or four in other processes that
// store the events, and with one that does not read. The engine does nothing else, so that it outruns all readers.
func BenchmarkEmit(b *testing.B) {
	readers := func(n int) func(testing.TB, *Server) {
		return func(t testing.TB, s *Server) {
			for range n {
				play(t, "reader", s.Address())
			}
			eventtest.Wait(t, "readers", func() bool { return s.Readers() == n })
		}
	}
	for _, c := range []struct {
		name  string
		begin func(testing.TB, *Server)
	}{
		{"absent", readers(0)},
		{"attached", readers(1)},
		{"attached-4", readers(4)},
		{"stalled", func(t testing.TB, s *Server) {
			connection(t, s)
			eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := server(b, path(b), Options{})
			c.begin(b, s)
			s.Emit(queued(1, 1))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s.Emit(token(1, event.Time(i), i))
				i++
			}
		})
	}
}

// BenchmarkEmitFromMany measures goroutines that emit concurrently.
func BenchmarkEmitFromMany(b *testing.B) {
	s := server(b, path(b), Options{})
	play(b, "reader", s.Address())
	eventtest.Wait(b, "the reader", func() bool { return s.Readers() == 1 })
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			s.Emit(token(1, event.Time(i), i))
		}
	})
}

// behind returns how many events wait for the slowest reader.
func (s *Server) behind() (most uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers {
		most = max(most, s.ring.head-r.cursor.next)
	}
	return most
}

// keepUp waits until half of the buffer is free, so that nothing is dropped.
func (c *crowd) keepUp() {
	for c.behind() > DefaultBuffer/2 {
		time.Sleep(50 * time.Microsecond)
	}
}

// BenchmarkEndToEnd measures events per second from one process into the store of another, without drops. An op is an
// event.
func BenchmarkEndToEnd(b *testing.B) {
	s := server(b, path(b), Options{})
	c := &crowd{Server: s}
	watcher := play(b, "reader", s.Address())
	eventtest.Wait(b, "the reader", func() bool { return s.Readers() == 1 })
	c.burst()
	watcher.account(b, c)
	b.ResetTimer()
	from := c.emitted.Total()
	for c.emitted.Total()-from < uint64(b.N) {
		c.burst()
		c.keepUp()
	}
	a := watcher.account(b, c)
	c.whole(b, &a)
	b.ReportMetric(float64(c.emitted.Total()-from)/b.Elapsed().Seconds(), "events/s")
}

// whole checks that nothing was dropped.
func (c *crowd) whole(b *testing.B, a *account) {
	b.Helper()
	if a.Came != c.emitted || a.Lost.Total() != 0 || a.Shown.Total() != 0 || a.Missing != 0 {
		b.Errorf("%d came of %d, %d were lost, %d are missing; the store shows %d lost", a.Came.Total(), c.emitted.Total(), a.Lost.Total(), a.Missing, a.Shown.Total())
	}
}

// BenchmarkSoak measures the memory in use on both sides after ten million events: tokens of requests that end, and
// some requests that never end. An op is all of them.
func BenchmarkSoak(b *testing.B) {
	const total = 10_000_000
	for b.Loop() {
		s := server(b, path(b), Options{})
		c := &crowd{Server: s}
		watcher := play(b, "reader", s.Address())
		eventtest.Wait(b, "the reader", func() bool { return s.Readers() == 1 })
		for range 200 {
			c.burst()
			c.keepUp()
		}
		engine, reader := heap(), watcher.account(b, c).Heap
		for stray := event.RequestID(1 << 40); c.emitted.Total() < total; stray++ {
			c.burst()
			c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: stray, State: event.StateQueued, Data: &event.Request{}})
			c.keepUp()
		}
		a := watcher.account(b, c)
		c.whole(b, &a)
		const mb = 1 << 20
		b.ReportMetric(float64(engine)/mb, "engine-MB-before")
		b.ReportMetric(float64(heap())/mb, "engine-MB-after")
		b.ReportMetric(float64(reader)/mb, "reader-MB-before")
		b.ReportMetric(float64(a.Heap)/mb, "reader-MB-after")
	}
}
