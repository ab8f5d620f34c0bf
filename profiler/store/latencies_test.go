package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestMaxITL checks that each finished request counts its longest gap once.
func TestMaxITL(t *testing.T) {
	p := newSession()
	for id, gaps := range map[event.RequestID][]int64{1: {2 * ms, 9 * ms, 3 * ms}, 2: {4 * ms}, 3: {}} {
		p.emit(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued})
		p.emit(ms, event.Event{Kind: event.KindToken, Req: id})
		for _, gap := range gaps {
			p.emit(gap, event.Event{Kind: event.KindToken, Req: id})
		}
		p.emit(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{Generated: len(gaps) + 1}})
	}
	got := p.store.Snapshot().Latency.Of[MaxITL][metric.Session]
	if got.Count != 2 || got.Min != 4*ms || got.Max != 9*ms {
		t.Errorf("%+v, want 9 ms and 4 ms of the requests with gaps", got)
	}
}
