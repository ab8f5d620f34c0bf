package session

import (
	"context"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// last is a sink that keeps the last event.
type last struct{ event event.Event }

func (l *last) Emit(e event.Event) { l.event = e }

// TestWithReason checks that the reason for a choice is replaced by newer reasons.
func TestWithReason(t *testing.T) {
	var got last
	var sink event.Sink
	run := WithReason("auto", func(_ context.Context, to event.Sink) error {
		sink = to
		return nil
	})
	if err := run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	loaded := &event.EngineInfo{Name: "x"}
	sink.Emit(event.Event{Kind: event.KindEngine, Data: loaded})
	if e := got.event.Data.(*event.EngineInfo); e.Reason != "auto" || e.Name != "x" || loaded.Reason != "" {
		t.Errorf("%+v, %+v", e, loaded)
	}
	sink.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Reason: "42 % of the weights"}})
	if e := got.event.Data.(*event.EngineInfo); e.Reason != "42 % of the weights" {
		t.Errorf("%+v", e)
	}
	if sink.Emit(event.Event{Kind: event.KindLog, Text: "a line"}); got.event.Text != "a line" {
		t.Error("other events do not pass")
	}
}
