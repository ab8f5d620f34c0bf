package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestKind checks what a snapshot says that it carries, for each kind of engine.
func TestKind(t *testing.T) {
	aggregates := func(slots ...event.Slot) Aggregates {
		return Aggregates{Aggregates: event.Aggregates{Slots: slots}, At: 1}
	}
	for _, c := range []struct {
		name           string
		caps           event.Caps
		reported       Aggregates
		polled         bool
		only, noDetail bool
	}{
		{"nothing known yet", 0, Aggregates{}, false, false, false},
		{"native engine", event.CapTokens | event.CapSteps, Aggregates{}, false, false, false},
		{"client without token stamps", event.CapText, Aggregates{}, false, false, false},
		{"server before its first report", event.CapAggregates, Aggregates{}, true, false, false},
		{"vLLM", event.CapAggregates, aggregates(), true, true, true},
		{"llama.cpp polled with slots", event.CapAggregates, aggregates(event.Slot{Request: 1}), true, true, false},
		{"traced server before its first report", event.CapAggregates | event.CapTokens, Aggregates{}, true, false, false},
		{"traced server", event.CapAggregates | event.CapTokens, aggregates(), true, false, false},
		{"reports without the capability", 0, aggregates(), true, true, true},
	} {
		s := &Snapshot{Engine: event.EngineInfo{Caps: c.caps}, Aggregates: c.reported}
		if s.Polled() != c.polled || s.AggregateOnly() != c.only || s.NoPerRequest() != c.noDetail {
			t.Errorf("%s: polled %v, aggregate only %v, no per-request data %v", c.name, s.Polled(), s.AggregateOnly(), s.NoPerRequest())
		}
	}
}

// TestMeasuredBy: a tap is named for servers of this machine without encryption only.
func TestMeasuredBy(t *testing.T) {
	for at, want := range map[string]string{
		"http://127.0.0.1:8000": "sudo llmtop tap 8000", "http://localhost:1234": "sudo llmtop tap 1234", "http://[::1]:8080/v1": "sudo llmtop tap 8080",
		"http://gpu1:8000": "llmtop proxy", "https://127.0.0.1:8443": "llmtop proxy", "http://127.0.0.1": "llmtop proxy", "unix:/run/x": "llmtop proxy", "": "llmtop proxy",
	} {
		var s Snapshot
		s.Engine.Remote.Address = at
		if got := s.MeasuredBy(); got != want {
			t.Errorf("%q: %q, want %q", at, got, want)
		}
	}
}
