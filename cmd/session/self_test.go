package session

import (
	"os"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// last is a sink that keeps the last event.
type last struct{ event event.Event }

func (l *last) Emit(e event.Event) { l.event = e }

// TestWithSelf checks that the self sample is that of this process, whoever samples the engine's machine, over the time
// since the last one.
func TestWithSelf(t *testing.T) {
	var got last
	now := event.Time(1e9)
	sink := NewWithSelf(func() event.Time { return now }, &got)
	defer sink.Close()
	theirs := &event.Host{Interval: 5, Engine: event.Process{PID: 1}, Self: event.Process{PID: 2}}
	for _, interval := range []event.Time{0, 2e9, 1e9} {
		now += interval
		sink.Emit(event.Event{Kind: event.KindHost, Data: theirs})
		h := got.event.Data.(*event.Host)
		if h.Self.PID != os.Getpid() || h.Self.Interval != int64(interval) || h.Self.CPU.OK() != (interval > 0) {
			t.Errorf("own process %+v, want process %d over %v ns", h.Self, os.Getpid(), interval)
		}
		if h.Interval != 5 || h.Engine.PID != 1 || theirs.Self.PID != 2 {
			t.Errorf("sample %+v; the event that others share %+v", h, theirs)
		}
	}
	sink.Emit(event.Event{Kind: event.KindLog, Text: "x"})
	if got.event.Text != "x" {
		t.Error("other events do not pass")
	}
}
