package answers

import (
	"compress/flate"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// The log, all that a recording has of warnings, ends with what each applied to.
func TestStopLogsWhatWarningsAppliedTo(t *testing.T) {
	var log []string
	var last event.EngineState
	s := NewServer(func() event.Time { return 1 }, 0)
	s.Start(event.SinkFunc(func(e event.Event) {
		switch e.Kind {
		case event.KindLog:
			log = append(log, e.Text)
		case event.KindEngine:
			last = e.Data.(*event.EngineInfo).State
		}
	}), event.EngineInfo{State: event.EngineReady})
	s.Warn(NoTPOT)
	s.Warn(NoTPOT)
	s.WarnConnection("a connection was not read")
	s.Stop()
	want := []string{NoTPOT, "a connection was not read", "a connection was not read (connections: 1)", NoTPOT + " (requests: 2)"}
	if !slices.Equal(log, want) || last != event.EngineStopped {
		t.Errorf("log %q, want %q; the last state is %v", log, want, last)
	}
}

// Warnings are bounded, whatever servers send.
func TestWarningsAreBounded(t *testing.T) {
	logged := 0
	s := NewServer(func() event.Time { return 1 }, 0)
	s.Start(event.SinkFunc(func(e event.Event) {
		if e.Kind == event.KindLog {
			logged++
		}
	}), event.EngineInfo{})
	for i := range 1000 {
		s.Warn(Unread(flate.CorruptInputError(i).Error()))
	}
	got := s.Warnings()
	if len(got) != maxWarnings+1 || logged != len(got) || got[len(got)-1] != "other warnings (requests: 936)" {
		t.Errorf("%d warnings, %d logged: %q", len(got), logged, got)
	}
}
