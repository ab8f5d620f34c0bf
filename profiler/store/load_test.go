package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestStagesOfTheEnginesOwn: while a model is loaded they are part of the load; later, without a request, they are not.
func TestStagesOfTheEnginesOwn(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 100 }})
	for _, state := range []event.EngineState{event.EngineLoading, event.EngineReady} {
		s.Emit(event.Event{Kind: event.KindEngine, Data: &event.Engine{State: state}})
		s.Emit(event.Event{Kind: event.KindStage, At: 50, Dur: 20, Stage: event.StageNone, Text: "load_context", Layer: -1})
	}
	load := s.Snapshot().Load
	if len(load) != 1 || load[0].Label() != "load_context" || load[0].Dur() != 20 {
		t.Errorf("load: %+v", load)
	}
}
