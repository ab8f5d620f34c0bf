package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestRetrospectiveRequest checks a request that is reported after its end without single tokens: decode time is known,
// gaps are not.
func TestRetrospectiveRequest(t *testing.T) {
	const sec = event.Time(time.Second)
	s := New(Options{Now: func() event.Time { return 20 * sec }})
	s.Emit(event.Event{Kind: event.KindRequest, At: 10 * sec, Req: 1, State: event.StateQueued, Data: &event.Request{Retrospective: true}})
	s.Emit(event.Event{Kind: event.KindStage, At: 11 * sec, Req: 1, Stage: event.StagePrompt, Dur: int64(sec), N: 64, Layer: -1})
	s.Emit(event.Event{Kind: event.KindToken, At: 12 * sec, Req: 1, ID: -1, N: 1})
	s.Emit(event.Event{Kind: event.KindRequest, At: 16 * sec, Req: 1, State: event.StateFinished, Data: &event.Outcome{Prompt: 64, Generated: 31, Decode: int64(3 * sec)}})
	v := s.Snapshot()
	r := v.Requests[0]
	if r.TTFT != (event.Reading{V: 2, Origin: event.Reported}) || r.Decode != (event.Reading{V: 3, Origin: event.Reported}) || r.TPOT != event.DerivedValue(0.1) || r.E2EL.V != 5 {
		t.Errorf("TTFT %v, decode %v, TPOT %v, E2EL %v", r.TTFT, r.Decode, r.TPOT, r.E2EL)
	}
	if r.Generated != 31 || len(r.Gaps) != 0 || v.Latency.Of[ITL][metric.Session].Count != 0 || v.Throughput.TTPS.V == 0 {
		t.Errorf("%d generated, gaps %v, ITL %+v, %v", r.Generated, r.Gaps, v.Latency.Of[ITL], v.Throughput.TTPS)
	}
	if r.STIL.Origin != event.NotReported {
		t.Errorf("STIL %v without a dispatch event, want not reported", r.STIL)
	}
}

// TestSecondModelLoad checks that stages that begin after a load belong to the next one.
func TestSecondModelLoad(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 1000 }})
	s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{State: event.EngineLoading}})
	for _, at := range []event.Time{100, 500} {
		s.Emit(event.Event{Kind: event.KindStage, At: at + 50, Dur: 40, Text: "Load weights", Layer: -1})
		s.Emit(event.Event{Kind: event.KindStage, At: at + 60, Dur: 60, Stage: event.StageLoad, Layer: -1})
		s.Emit(event.Event{Kind: event.KindStage, At: at + 55, Dur: 5, Text: "Capture model", Layer: -1})
	}
	if load := s.Snapshot().Load; len(load) != 3 || load[0].Start != 510 {
		t.Errorf("%+v", load)
	}
}
