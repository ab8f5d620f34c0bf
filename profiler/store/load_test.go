package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestEngineSpecificLoadStages checks that engine-specific stages belong to the load while the model is loading, and
// are ignored later.
func TestEngineSpecificLoadStages(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 100 }})
	for _, state := range []event.EngineState{event.EngineLoading, event.EngineReady} {
		s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{State: state}})
		s.Emit(event.Event{Kind: event.KindStage, At: 50, Dur: 20, Stage: event.StageNone, Text: "load_context", Layer: -1})
	}
	load := s.Snapshot().Load
	if len(load) != 1 || load[0].Label() != "load_context" || load[0].Dur() != 20 {
		t.Errorf("load: %+v", load)
	}
}
