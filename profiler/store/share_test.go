package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// server is a store that is told reports as vLLM's metrics make them, one a second.
type server struct {
	*Store
	now event.Time
	n   uint64
}

func newServer(share *Share) *server {
	s := &server{now: event.Time(time.Second)}
	s.Store = New(Options{Now: func() event.Time { return s.now }, Queue: 512, Share: share})
	s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.Engine{
		Name: "vLLM", Caps: event.CapReports, State: event.EngineReady, Remote: event.Remote{Address: "http://gpu1:8000", Link: event.LinkConnected},
	}})
	return s
}

// second is a second in which requests have ended.
func (s *server) second() {
	s.now += event.Time(time.Second)
	s.n = s.n*6364136223846793005 + 1442695040888963407
	some := func(most uint64) float64 { return float64(s.n >> 33 % most) }
	p := &event.Report{
		Interval: time.Second.Nanoseconds(), Running: stated(some(20)), Waiting: stated(some(7)), Decode: event.From(300 + some(100)), KVUsage: stated(some(100) / 100),
		Finished: event.From(some(9)), Prompt: event.From(some(9000)), Generated: event.From(310),
	}
	bounds := make([]int64, 22)
	for i := range bounds {
		bounds[i] = int64(i*i+1) * 1e6
	}
	for i, name := range []string{event.TimesTTFT, event.TimesITL, event.TimesE2EL, event.TimesQueue, event.TimesPrefill, event.TimesDecode, event.TimesInference} {
		counts := make([]uint64, len(bounds)+1)
		total := uint64(0)
		for k := range 8 {
			counts[5+k] = s.n >> (3*k + i) % 12
			total += counts[5+k]
		}
		p.Times = append(p.Times, event.Times{Name: name, Count: total, Sum: int64(total) * 50e6, Bounds: bounds, Counts: counts})
	}
	s.Emit(event.Event{Kind: event.KindReport, At: s.now, Layer: -1, Data: p})
	s.Drain()
}

// TestManyServersShareWhatIsRemembered: hundreds of servers remember minutes each, and take no more than what is allowed to them together.
func TestManyServersShareWhatIsRemembered(t *testing.T) {
	const total, members, seconds = 48 << 20, 500, 600
	share := NewShare(total, BesideHistory)
	s := newServer(share)
	if share.Each() != BesideHistory {
		t.Errorf("one server alone may take %d bytes", share.Each())
	}
	for range members - 1 {
		share.join()
	}
	least := event.Time(0)
	for i := range seconds {
		s.second()
		if i < seconds/2 {
			continue
		}
		size := 0
		for _, seg := range s.history.segments {
			size += seg.size + len(seg.open)
		}
		if size > total/members*5/4 {
			t.Fatalf("after %d s it takes %d bytes, of the %d that are its part", i, size, total/members)
		}
		from, to := s.Travel().Reach()
		if reach := to - from; least == 0 || reach < least {
			least = reach
		}
	}
	t.Logf("each of %d servers remembers at least %v", members, time.Duration(least))
	if least < event.Time(2*time.Minute) {
		t.Errorf("each of %d servers remembers only %v", members, time.Duration(least))
	}
}
