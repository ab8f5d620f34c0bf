package pane

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestWaysToReport checks that llmtop advises an engine that emits its own events which calls to add, even if that engine
// counts no events, and advises something else for a server.
func TestWaysToReport(t *testing.T) {
	for address, want := range map[string]string{
		"unix:/run/user/1000/llmtop/own.sock": "call stage() around the parts of a request",
		"tcp:127.0.0.1:9000":                  "call stage() around the parts of a request",
		"http://127.0.0.1:8000":               "attach by process id (llama.cpp), or receive its traces with --otlp",
	} {
		s := store.New(store.Options{Now: func() event.Time { return 2 }})
		s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.EngineInfo{
			Name: "own", State: event.EngineReady, Caps: event.CapTokens, Remote: event.Remote{Address: address, Link: event.LinkConnected},
		}})
		got := ""
		for name, how := range (&Frame{}).NotReported(s.Snapshot()) {
			if name == "stages" {
				got = how
			}
		}
		if got != want {
			t.Errorf("%s: stages: %q, want %q", address, got, want)
		}
	}
}
