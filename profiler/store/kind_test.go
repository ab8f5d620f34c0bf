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
		want           Kind
		only, noDetail bool
	}{
		{"nothing known yet", 0, nil, Traced, false, false},
		{"native engine", event.CapTokens | event.CapSteps, nil, Traced, false, false},
		{"client without token stamps", event.CapText, nil, Traced, false, false},
		{"server before its first report", event.CapAggregates, nil, Polled, false, false},
		{"vLLM", event.CapAggregates, aggregates(), Polled | Reported, true, true},
		{"llama.cpp polled with slots", event.CapAggregates, aggregates(event.Slot{Request: 1}), Polled | Reported | Slots, true, false},
		{"traced server before its first report", event.CapAggregates | event.CapTokens, nil, Traced | Polled, false, false},
		{"traced server", event.CapAggregates | event.CapTokens, aggregates(), Traced | Polled | Reported, false, false},
		{"reports without the capability", 0, aggregates(), Polled | Reported, true, true},
	} {
		s := &Snapshot{Engine: event.EngineInfo{Caps: c.caps}, Aggregates: c.reported}
		if got := s.Kind(); got != c.want || s.AggregateOnly() != c.only || s.NoPerRequest() != c.noDetail ||
			s.Traced() != c.want.Has(Traced) || s.Polled() != c.want.Has(Polled) || s.Reported() != (c.reported != nil) {
			t.Errorf("%s: kind %04b, want %04b; aggregate only %v, no per-request data %v",
				c.name, got, c.want, s.AggregateOnly(), s.NoPerRequest())
		}
	}
}
