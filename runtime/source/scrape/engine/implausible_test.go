package engine

import (
	"maps"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestImplausibleNumbersAreCounted: a number in a server's status that nothing can have measured is left out and counted as malformed, and what stands
// beside it counts.
func TestImplausibleNumbersAreCounted(t *testing.T) {
	llama := llamaPages(t)
	for name, c := range map[string]struct {
		pages    map[string]string
		path     string // of the page whose first WAS is replaced
		was      string
		drain    bool
		reported func(*event.Aggregates) bool
	}{
		"llama.cpp slots": {
			pages: llama, path: "/slots", was: `"n_ctx": 8192`, reported: func(p *event.Aggregates) bool {
				return len(p.Slots) == 4 && p.Running.V == 2 && p.Slots[0].Context == 0
			},
		},
		"llama.cpp token": {
			pages: llama, path: "/slots", was: `"n_decoded": 285`, reported: func(p *event.Aggregates) bool { return len(p.Slots) == 4 && p.Running.V == 2 },
		},
		"llama.cpp props": {pages: llama, path: "/props", was: `"total_slots": 4`, reported: func(p *event.Aggregates) bool { return len(p.Slots) == 4 }},
		"SGLang": {
			pages: map[string]string{"/v1/models": modelList("sglang"), "/v1/loads": sampleOf(t, "sglang_v1_loads.json"), "/server_info": `{"version":"0.5.17"}`},
			path:  "/v1/loads", was: `"num_used_tokens": 167936`, reported: func(p *event.Aggregates) bool { return p.Running.V == 6 && !p.KVUsed.OK() },
		},
		"SGLang's start": {
			pages: map[string]string{
				"/v1/models": modelList("sglang"), "/v1/loads": sampleOf(t, "sglang_v1_loads.json"), "/server_info": `{"version":"0.5.17","startup_time":{"load":2,"warmup":3}}`,
			},
			path: "/server_info", was: `"warmup":3`, reported: func(p *event.Aggregates) bool { return len(p.More) == 1 && p.More[0].V == 2 },
		},
		"TensorRT-LLM": {
			pages: map[string]string{"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.3.0"}`, "/metrics": sampleOf(t, "trtllm_metrics_iteration.json")},
			path:  "/metrics", was: `"usedNumBlocks": 3`, drain: true, reported: func(p *event.Aggregates) bool { return p.Running.OK() && !p.KVUsed.OK() },
		},
		"Ollama": {
			pages: map[string]string{"/v1/models": modelList("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": sampleOf(t, "ollama_ps.json")},
			path:  "/api/ps", was: `"context_length": 8192`, reported: func(p *event.Aggregates) bool { return len(p.More) > 0 },
		},
	} {
		for _, number := range []string{"9000000000000000000", "1e300"} {
			t.Run(name+" "+number, func(t *testing.T) {
				pages := maps.Clone(c.pages)
				key, _, _ := strings.Cut(c.was, ":")
				pages[c.path] = strings.Replace(pages[c.path], c.was, key+":"+number, 1)
				if pages[c.path] == c.pages[c.path] {
					t.Fatalf("there is no %s in %s", c.was, pages[c.path])
				}
				w := startPoller(t, Options{Address: newFake(t, pages).URL, Drain: c.drain})
				waitFor(w, event.KindAggregates, 0, c.reported)
				waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.Remote.Malformed > 0 && e.Remote.Link == event.LinkConnected })
			})
		}
	}
}
