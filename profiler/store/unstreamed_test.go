package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestUnstreamedResponse checks a response without token events: E2EL is known, TTFT and TPOT are not.
func TestUnstreamedResponse(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 10e9 }})
	s.Emit(event.Event{Kind: event.KindRequest, At: 1e9, Req: 1, State: event.StateQueued, Data: &event.Request{}})
	s.Emit(event.Event{Kind: event.KindRequest, At: 3e9, Req: 1, State: event.StateFinished, Data: &event.Outcome{Prompt: 10, Generated: 30}})
	r := s.Snapshot().Requests[0]
	if r.E2EL.V != 2 || r.TPS.V != 15 || r.Overall.V != 20 {
		t.Errorf("E2EL %v, TPS %v, overall %v; want 2 s, 15 and 20 tokens/s", r.E2EL, r.TPS, r.Overall)
	}
	if r.TTFT.Origin != event.NotReported || r.TPOT.Origin != event.NotReported {
		t.Errorf("TTFT %v, TPOT %v, want not reported", r.TTFT, r.TPOT)
	}
}
