package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestFailedEngine checks that the last log lines are kept of an engine that has failed, and of no other.
func TestFailedEngine(t *testing.T) {
	r := newRun()
	for i := range 50 {
		r.emit(ms, event.Event{Kind: event.KindLog, Text: fmt.Sprint("line ", i)})
	}
	r.emit(ms, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "x", State: event.EngineReady, Reason: "auto"}})
	if e := r.build(Meta{}).Engine; e.LastLog != nil {
		t.Errorf("an engine that has not failed has a last log: %q", e.LastLog)
	}
	r.emit(ms, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "x", State: event.EngineFailed, Reason: "it has crashed"}})
	built := r.build(Meta{})
	if log := built.Engine.LastLog; len(log) != maxLog || log[maxLog-1] != "line 49" {
		t.Errorf("last log %q", log)
	}
	if got := textOf(t, built); !strings.Contains(got, "  Engine message: it has crashed\n  log: line 30\n") {
		t.Errorf("text:\n%s", got)
	}
}
