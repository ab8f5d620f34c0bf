package pane

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestWaysToReport checks that llmtop advises an engine that emits its own events which calls to add, even if that engine
// counts no events, and advises something else for a server.
func TestWaysToReport(t *testing.T) {
	for _, c := range []struct {
		name, address string
		pid           int
		want          string
	}{
		{"own", "unix:/run/user/1000/llmtop/own.sock", 0, "call stage() around the parts of a request"},
		{"own", "tcp:127.0.0.1:9000", 42, "call stage() around the parts of a request"},
		{"vLLM", "http://127.0.0.1:8000", 42, "receive its traces with --otlp (vLLM, SGLang)"},
		{"llama.cpp", "http://127.0.0.1:8080", 42, "sudo llmtop attach pid:42"},
		{"llama.cpp", "http://gpu1:8080", 0, "sudo llmtop attach pid:PID"},
	} {
		s := store.New(store.Options{Now: func() event.Time { return 2 }})
		s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.EngineInfo{
			Name: c.name, State: event.EngineReady, Caps: event.CapTokens, Remote: event.Remote{Address: c.address, Link: event.LinkConnected},
		}})
		if c.pid > 0 {
			s.Emit(event.Event{Kind: event.KindHost, At: 1, Layer: -1, Data: &event.Host{Engine: event.Process{PID: c.pid}}})
		}
		got := ""
		for name, how := range (&Frame{}).NotReported(s.Snapshot()) {
			if name == "stages" {
				got = how
			}
		}
		if got != c.want {
			t.Errorf("%s: stages: %q, want %q", c.address, got, c.want)
		}
	}
}
