package exposition

import (
	"io"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestScrapesWhileEnginesRun lets several engines emit while several scrapers fetch. At the end everything has been
// counted exactly once.
func TestScrapesWhileEnginesRun(t *testing.T) {
	const requests, tokens = 60, 20
	x := New("1.0")
	server := httptest.NewServer(x.Handler(""))
	defer server.Close()
	var clock atomic.Int64
	now := func() event.Time { return event.Time(clock.Load()) }
	clock.Store(sec)
	var engines, readers sync.WaitGroup
	var stores []*store.Store
	for _, name := range []string{"one", "two"} {
		engine := x.Add(name, now)
		s := store.New(store.Options{Now: now, OnRequest: engine.Request, OnGaps: engine.Gaps})
		engine.Watch(s.Snapshot)
		stores = append(stores, s)
		sink := event.Tee{s, engine}
		sink.Emit(event.Event{Kind: event.KindEngine, At: now(), Data: &event.EngineInfo{Name: name, State: event.EngineReady}})
		engines.Go(func() {
			for id := range event.RequestID(requests) {
				at := func() event.Time { return event.Time(clock.Add(10 * us)) }
				sink.Emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, Req: id + 1, At: at(), Data: &event.Request{}})
				sink.Emit(event.Event{Kind: event.KindRequest, State: event.StateDispatched, Req: id + 1, At: at()})
				for range tokens {
					sink.Emit(event.Event{Kind: event.KindToken, Req: id + 1, N: 1, At: at()})
				}
				sink.Emit(event.Event{Kind: event.KindRequest, State: event.StateFinished, Req: id + 1, At: at(), Data: &event.Outcome{Generated: tokens}})
				time.Sleep(100 * time.Microsecond)
			}
		})
	}
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				answer, err := server.Client().Get(server.URL + Path)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		})
	}
	engines.Wait()
	close(done)
	readers.Wait()
	for _, c := range []struct {
		metric *instrument
		each   uint64
	}{{ttft, requests}, {queue, requests}, {e2el, requests}, {tpot, requests}, {itl, requests * (tokens - 1)}} {
		for i, m := range family(t, x, c.metric).Metric {
			if n := m.Histogram.GetSampleCount(); n != c.each {
				t.Errorf("%s of engine %d counts %d, want %d", c.metric.name, i, n, c.each)
			}
		}
	}
	for _, s := range stores {
		if n := s.Snapshot().Latency.Of[store.TTFT][metric.Session].Count; n != requests {
			t.Errorf("a store counts %d requests", n)
		}
	}
}
