package scrape

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// hasSums reports whether a report has readings of the server as a whole.
func hasSums(p *event.Aggregates) bool {
	for _, r := range []event.Reading{p.Running, p.Decode, p.Prefill, p.Generated, p.KVUsed, p.KVTotal, p.KVUsage} {
		if r.Origin != event.NotReported {
			return true
		}
	}
	return false
}

// TestOllamaRunners: the slots of the llama-servers started by Ollama are reported as its own, until they end.
func TestOllamaRunners(t *testing.T) {
	one := newFake(t, map[string]string{"/slots": `[{"id":0,"n_ctx":1024,"is_processing":true,"id_task":3,"n_prompt_tokens":9,"next_token":[{"n_decoded":4}]}]`})
	two := newFake(t, map[string]string{"/slots": `[{"id":0,"n_ctx":512,"is_processing":false},{"id":1,"n_ctx":512,"is_processing":true,"id_task":8,"n_prompt_tokens":20}]`})
	ps := sampleOf(t, "ollama_ps.json")
	model := strings.TrimSuffix(strings.SplitN(ps, "[", 2)[1], "]\n}\n")
	both := `{"models":[` + model + `,` + strings.ReplaceAll(model, "qwen3:30b-a3b", "another") + `]}`
	f := newFake(t, map[string]string{"/v1/models": modelList("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": both})
	var addresses atomic.Pointer[[]string]
	addresses.Store(&[]string{one.URL})
	w := startPoller(t, Options{Address: f.URL, Runners: func() []string { return *addresses.Load() }})
	p, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return len(p.Slots) == 1 })
	if why, _ := endpoint(p, slotsOfRunners); why != "found for 1 of 2 models" || p.Slots[0].Generated != 4 || hasSums(p) {
		t.Errorf("one of two llama-servers: %+v", p)
	}
	// The llama-server of the second model is found.
	addresses.Store(&[]string{one.URL, two.URL})
	p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 3 })
	if why, there := endpoint(p, slotsOfRunners); !there || why != "" {
		t.Errorf("both llama-servers: %q", why)
	}
	if p.Running.V != 2 || p.KVTotal.V != 2048 || p.KVUsed.V != 29 || p.Waiting.Origin != event.NotReported ||
		p.Slots[0].Slot != 0 || p.Slots[1].Slot != 1 || p.Slots[2].Slot != 2 || len(p.More) != 2 {
		t.Errorf("both llama-servers: %+v", p)
	}
	e, last := waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.Slots == 3 })
	if e.Name != "Ollama" {
		t.Errorf("engine %+v", e)
	}
	one.Close()
	addresses.Store(&[]string{two.URL})
	p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 2 })
	if why, _ := endpoint(p, slotsOfRunners); why != "found for 1 of 2 models" || hasSums(p) {
		t.Errorf("after one has ended: %+v", p)
	}
	waitFor(w, event.KindEngine, last, func(e *event.EngineInfo) bool { return e.Slots == 0 })
	// Its model is unloaded: the other one is the only one left.
	f.setPage("/api/ps", `{"models":[`+model+`]}`)
	p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.OK() })
	if why, there := endpoint(p, slotsOfRunners); !there || why != "" || p.Running.V != 1 || p.KVTotal.V != 1024 || len(p.Slots) != 2 {
		t.Errorf("one model: %+v", p)
	}
	f.setPage("/slots", `not requested from Ollama`)
	two.setPage("/slots", `{"error":{"code":501}}`)
	if p, _ := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 0 }); hasSums(p) {
		t.Errorf("no llama-server: %+v", p)
	} else if why, _ := endpoint(p, slotsOfRunners); why != "no llama-server found on this machine" {
		t.Errorf("no llama-server: %q", why)
	}
	if f.requestCount("/slots") != 0 {
		t.Error("slots were requested from Ollama itself")
	}
}

// TestOllamaModels: the report has the models in memory as Ollama lists them, and each request the model of its
// llama-server. Without any, the engine says so.
func TestOllamaModels(t *testing.T) {
	one := newFake(t, map[string]string{"/slots": `[{"id":0,"n_ctx":1024,"is_processing":true,"id_task":3,"n_prompt_tokens":9,"next_token":[{"n_decoded":4}]}]`})
	f := newFake(t, map[string]string{
		"/v1/models": modelList("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": sampleOf(t, "ollama_ps.json"),
	})
	w := startPoller(t, Options{Address: f.URL, Runners: func() []string { return []string{one.URL} }})
	p, _ := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return len(p.Slots) == 1 })
	if len(p.Models) != 1 || p.Slots[0].Model != "qwen3:30b-a3b" {
		t.Fatalf("one model: %+v", p)
	}
	if m := p.Models[0]; m.Name != "qwen3:30b-a3b" || m.Bytes != 19818312704 || m.GPUShare().V != 1 || m.Context != 8192 {
		t.Errorf("model %+v", m)
	}
	f.setPage("/api/ps", `{"models":[]}`)
	waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool {
		return e.State == event.EnginePaused && e.Reason == "no model in memory"
	})
}

// TestOllamaUnload: a model that stays for decades, or until an unreadable or past time, has no time of unloading.
func TestOllamaUnload(t *testing.T) {
	const epoch = int64(1_700_000_000e9)
	for stamp, want := range map[string]event.Time{
		"2023-11-14T22:13:30Z": 10e9, "2318-01-01T00:00:00Z": 0, "2001-01-01T00:00:00Z": 0, "soon": 0, "": 0,
	} {
		if got := unloadTime(stamp, epoch); got != want {
			t.Errorf("%q: %d, want %d", stamp, got, want)
		}
	}
}

// TestOllamaRunnerNames: a llama-server has a model only where no other is possible, and loses it with the model.
func TestOllamaRunnerNames(t *testing.T) {
	a, b := &runner{}, &runner{}
	o := &ollama{loaded: []event.LoadedModel{{Name: "one"}, {Name: "two"}}, runners: map[string]*runner{"a": a, "b": b}}
	if o.nameRunner(); a.model != "" || b.model != "" {
		t.Errorf("two at once: %q and %q", a.model, b.model)
	}
	a.model = "one"
	if o.nameRunner(); a.model != "one" || b.model != "two" {
		t.Errorf("one more: %q and %q", a.model, b.model)
	}
	o.loaded = []event.LoadedModel{{Name: "two"}, {Name: "three"}}
	if o.nameRunner(); a.model != "three" || b.model != "two" {
		t.Errorf("another: %q and %q", a.model, b.model)
	}
}
