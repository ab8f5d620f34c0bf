package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
)

// recorder is a sink that records events.
type recorder []event.Event

func (k *recorder) Emit(e event.Event) { *k = append(*k, e) }

func TestWithoutText(t *testing.T) {
	const secret = "the secret"
	top := []event.TopProb{{ID: 1, LogP: -1, Text: secret}, {ID: 2, LogP: -2}}
	queued := &event.Request{Prompt: secret, Label: "speech", Group: "a"}
	engine := &event.EngineInfo{Name: "native", Caps: event.CapText | event.CapTokens}
	var got recorder
	sink := event.WithoutText(&got)
	for _, e := range []event.Event{
		{Kind: event.KindToken, Req: 1, ID: 7, Text: secret, Top: top},
		{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: queued},
		{Kind: event.KindEngine, Data: engine},
		{Kind: event.KindLog, Text: "loaded"},
		{Kind: event.KindStage, Text: "rerank"},
	} {
		sink.Emit(e)
	}
	want := recorder{
		{Kind: event.KindToken, Req: 1, ID: 7, Top: []event.TopProb{{ID: 1, LogP: -1}, {ID: 2, LogP: -2}}},
		{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{Label: "speech", Group: "a"}},
		{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: event.CapTokens}},
		{Kind: event.KindLog, Text: "loaded"},
		{Kind: event.KindStage, Text: "rerank"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("passed on (-want +got):\n%s", diff)
	}
	if top[0].Text != secret || queued.Prompt != secret || !engine.Caps.Has(event.CapText) {
		t.Error("WithoutText has written to shared events")
	}
	if strings.Contains(cmp.Diff(recorder{}, got), secret) {
		t.Error("the text was passed on")
	}
}
