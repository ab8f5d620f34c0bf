package session

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// last is a sink that keeps the last event.
type last struct{ event event.Event }

func (l *last) Emit(e event.Event) { l.event = e }

// TestWithSelf checks that the self sample is that of this process, whoever samples the engine's machine.
func TestWithSelf(t *testing.T) {
	var own SelfSample
	var got last
	sink := own.In(&got)
	theirs := &event.Host{Engine: event.Process{PID: 1}, Self: event.Process{PID: 2}}
	sink.Emit(event.Event{Kind: event.KindHost, Data: theirs})
	if h := got.event.Data.(*event.Host); h.Self.PID != 0 || h.Engine.PID != 1 {
		t.Errorf("before the first sample of this process: %+v", h)
	}
	own.Emit(event.Event{Kind: event.KindHost, Data: &event.Host{Self: event.Process{PID: 3}}})
	sink.Emit(event.Event{Kind: event.KindHost, Data: theirs})
	if h := got.event.Data.(*event.Host); h.Self.PID != 3 || h.Engine.PID != 1 || theirs.Self.PID != 2 {
		t.Errorf("own process is %+v, want 3; the event that others share has %+v", h, theirs)
	}
	sink.Emit(event.Event{Kind: event.KindLog, Text: "x"})
	if got.event.Text != "x" {
		t.Error("other events do not pass")
	}
}
