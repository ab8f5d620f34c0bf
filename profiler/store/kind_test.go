package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestKind checks what a snapshot says that it carries, for each kind of engine.
func TestKind(t *testing.T) {
	aggregates := func(slots ...event.Slot) *Aggregates {
		return &Aggregates{Aggregates: event.Aggregates{Slots: slots}}
	}
	for _, c := range []struct {
		name           string
		caps           event.Caps
		reported       *Aggregates
		traced, polled bool
		only, noDetail bool
	}{
		{"nothing known yet", 0, nil, true, false, false, false},
		{"native engine", event.CapTokens | event.CapSteps, nil, true, false, false, false},
		{"client without token stamps", event.CapText, nil, true, false, false, false},
		{"server before its first report", event.CapAggregates, nil, false, true, false, false},
		{"vLLM", event.CapAggregates, aggregates(), false, true, true, true},
		{"llama.cpp polled with slots", event.CapAggregates, aggregates(event.Slot{Request: 1}), false, true, true, false},
		{"traced server before its first report", event.CapAggregates | event.CapTokens, nil, true, true, false, false},
		{"traced server", event.CapAggregates | event.CapTokens, aggregates(), true, true, false, false},
		{"reports without the capability", 0, aggregates(), false, true, true, true},
	} {
		s := &Snapshot{Engine: event.EngineInfo{Caps: c.caps}, Aggregates: c.reported}
		if s.Traced() != c.traced || s.Polled() != c.polled || s.AggregateOnly() != c.only || s.NoPerRequest() != c.noDetail {
			t.Errorf("%s: traced %v, polled %v, aggregate only %v, no per-request data %v", c.name, s.Traced(), s.Polled(), s.AggregateOnly(), s.NoPerRequest())
		}
	}
}
