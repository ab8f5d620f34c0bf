package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// server is a store that receives one report a second with the metrics of vLLM.
type server struct {
	*Store
	now event.Time
	n   uint64
}

func newServer(share *HistoryBudget) *server {
	s := &server{now: event.Time(time.Second)}
	s.Store = New(Options{Now: func() event.Time { return s.now }, Queue: 512, Budget: share})
	s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.EngineInfo{
		Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady, Remote: event.Remote{Address: "http://gpu1:8000", Link: event.LinkConnected},
	}})
	return s
}

// emitSecond emits the report of one second with pseudo-random values.
func (s *server) emitSecond() {
	s.now += event.Time(time.Second)
	s.n = s.n*6364136223846793005 + 1442695040888963407
	random := func(limit uint64) float64 { return float64(s.n >> 33 % limit) }
	p := &event.Aggregates{
		Interval: time.Second.Nanoseconds(), Running: reported(random(20)), Waiting: reported(random(7)), Decode: event.DerivedValue(300 + random(100)), KVUsage: reported(random(100) / 100),
		Finished: event.DerivedValue(random(9)), Prompt: event.DerivedValue(random(9000)), Generated: event.DerivedValue(310),
	}
	bounds := make([]int64, 22)
	for i := range bounds {
		bounds[i] = int64(i*i+1) * 1e6
	}
	for i, name := range []string{event.HistogramTTFT, event.HistogramITL, event.HistogramE2EL, event.HistogramQueue, event.HistogramPrefill, event.HistogramDecode, event.HistogramInference} {
		counts := make([]uint64, len(bounds)+1)
		total := uint64(0)
		for k := range 8 {
			counts[5+k] = s.n >> (3*k + i) % 12
			total += counts[5+k]
		}
		p.Histograms = append(p.Histograms, event.Histogram{Name: name, Count: total, Sum: int64(total) * 50e6, Bounds: bounds, Counts: counts})
	}
	s.Emit(event.Event{Kind: event.KindAggregates, At: s.now, Layer: -1, Data: p})
	s.Drain()
}

// TestServersShareHistoryBudget checks that hundreds of servers keep minutes of history each within a shared budget.
func TestServersShareHistoryBudget(t *testing.T) {
	const total, members, seconds = 24 << 20, 500, 600
	share := NewHistoryBudget(total, AttachedHistory)
	s := newServer(share)
	if share.PerStore() != AttachedHistory {
		t.Errorf("a single server may take %d bytes", share.PerStore())
	}
	for range members - 1 {
		share.join()
	}
	shortest := event.Time(0)
	for i := range seconds {
		s.emitSecond()
		if i < seconds/2 {
			continue
		}
		size := 0
		for _, seg := range s.history.segments {
			size += seg.size + len(seg.open) + len(seg.report)
		}
		if size > total/members*5/4 {
			t.Fatalf("after %d s the history takes %d bytes, its share is %d", i, size, total/members)
		}
		from, to := s.HistoryReader().Range()
		if reach := to - from; shortest == 0 || reach < shortest {
			shortest = reach
		}
	}
	t.Logf("each of %d servers keeps at least %v of history", members, time.Duration(shortest))
	if shortest < event.Time(2*time.Minute) {
		t.Errorf("each of %d servers keeps only %v of history", members, time.Duration(shortest))
	}
}
