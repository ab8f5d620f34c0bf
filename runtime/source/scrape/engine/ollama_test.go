package engine

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	runners := new(runnerList)
	runners.set(one.URL)
	w := startPoller(t, Options{Address: f.URL, Runners: runners.get})
	p, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return len(p.Slots) == 1 })
	if why, _ := endpoint(p, slotsOfRunners); why != "known for 1 of 2 models" || p.Slots[0].Generated != 4 || hasSums(p) {
		t.Errorf("one of two llama-servers: %+v", p)
	}
	// The llama-server of the second model is found.
	runners.set(one.URL, two.URL)
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
	runners.set(two.URL)
	p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 2 })
	if why, _ := endpoint(p, slotsOfRunners); why != "known for 1 of 2 models" || hasSums(p) {
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
	runners.set()
	if p, _ := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 0 }); hasSums(p) {
		t.Errorf("no llama-server: %+v", p)
	}
	p, _ = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
		why, _ := endpoint(p, slotsOfRunners)
		return why == "no llama-server found on this machine"
	})
	if hasSums(p) || len(p.Slots) > 0 {
		t.Errorf("no llama-server: %+v", p)
	}
	if f.requestCount("/slots") != 0 {
		t.Error("slots were requested from Ollama itself")
	}
}

// runnerList lists llama-servers for a test. The file of each is named like the end of its address.
type runnerList struct {
	list atomic.Pointer[map[string]string]
}

func (l *runnerList) set(addresses ...string) {
	list := map[string]string{}
	for _, at := range addresses {
		list[at] = fileAt(at)
	}
	l.list.Store(&list)
}

func (l *runnerList) get() map[string]string { return *l.list.Load() }

func fileAt(address string) string {
	return "sha256-" + address[strings.LastIndexByte(address, ':')+1:]
}

// TestOllamaModels: the report has the models in memory as Ollama lists them, and each request the model whose file its
// llama-server runs. A llama-server that still loads its model hides no numbers of the others. Without a model the engine
// says so.
func TestOllamaModels(t *testing.T) {
	const busy = `[{"id":0,"n_ctx":1024,"is_processing":true,"id_task":3,"n_prompt_tokens":9,"next_token":[{"n_decoded":4}]}]`
	one, two := newFake(t, map[string]string{"/slots": busy}), newFake(t, map[string]string{"/slots": busy})
	two.setHandler(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"code":503,"message":"Loading model"}}`, http.StatusServiceUnavailable)
	})
	ps := sampleOf(t, "ollama_ps.json")
	second := strings.ReplaceAll(strings.ReplaceAll(ps, "qwen3:30b-a3b", "another"), "2026-08-20T09:20", "2318-08-20T09:20")
	f := newFake(t, map[string]string{
		"/v1/models": modelList("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": ps,
	})
	f.setHandler(func(w http.ResponseWriter, r *http.Request) {
		var question struct{ Model string }
		if r.URL.Path != "/api/show" {
			f.servePage(w, r)
		} else if err := json.NewDecoder(r.Body).Decode(&question); err == nil && r.Method == http.MethodPost {
			file := map[string]string{"qwen3:30b-a3b": fileAt(one.URL), "another": fileAt(two.URL)}[question.Model]
			_, _ = io.WriteString(w, `{"modelfile":"# FROM a\n\nFROM /models/blobs/`+file+`\nFROM /models/blobs/projector\nTEMPLATE x\n"}`)
		}
	})
	runners := new(runnerList)
	runners.set(one.URL)
	w := startPoller(t, Options{Address: f.URL, Runners: runners.get})
	p, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return len(p.Slots) == 1 })
	if len(p.Models) != 1 || p.Slots[0].Model != "qwen3:30b-a3b" || !p.AtLeast {
		t.Fatalf("one model: %+v", p)
	}
	if m := p.Models[0]; m.Name != "qwen3:30b-a3b" || m.Bytes != 19818312704 || m.GPUShare().V != 1 || m.Context != 8192 || m.Stays {
		t.Errorf("model %+v", m)
	}
	list := func(text string) string {
		return text[strings.IndexByte(text, '[')+1 : strings.LastIndexByte(text, ']')]
	}
	runners.set(one.URL, two.URL)
	f.setPage("/api/ps", `{"models":[`+list(ps)+`,`+list(second)+`]}`)
	p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Models) == 2 })
	if why, there := endpoint(p, slotsOfRunners); p.Running.V != 1 || !p.Models[1].Stays || !there || why != "" {
		t.Errorf("while the second model loads: %q, %+v", why, p)
	}
	two.setHandler(nil)
	p, _ = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 2 })
	if models := []string{p.Slots[0].Model, p.Slots[1].Model}; p.Running.V != 2 || p.Generated.V != 4 || !slices.Contains(models, "another") || models[0] == models[1] {
		t.Errorf("both models: %q, %+v", models, p)
	}
	for path, most := range map[string]int{"/api/show": 2, "/slots": 0} {
		if got := f.requestCount(path); got > most {
			t.Errorf("%s was requested %d times from Ollama, want at most %d", path, got, most)
		}
	}
	f.setPage("/api/ps", `{"models":[]}`)
	waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool {
		return e.State == event.EnginePaused && e.Reason == "no model in memory"
	})
}

// TestOllamaReload: a llama-server that replaces another one of the same model is found at once, not after a pause.
func TestOllamaReload(t *testing.T) {
	was := runnersEvery
	t.Cleanup(func() { runnersEvery = was })
	runnersEvery = time.Hour
	const idle = `[{"id":0,"n_ctx":1024,"is_processing":false}]`
	one, two := newFake(t, map[string]string{"/slots": idle}), newFake(t, map[string]string{"/slots": idle})
	f := newFake(t, map[string]string{
		"/v1/models": modelList("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": sampleOf(t, "ollama_ps.json"),
	})
	runners := new(runnerList)
	runners.set(one.URL)
	w := startPoller(t, Options{Address: f.URL, Runners: runners.get})
	_, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return p.Running.OK() })
	runners.set(two.URL)
	one.Close()
	_, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return !p.Running.OK() })
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.OK() })
}

// TestOllamaUnload: a model that stays for decades is never unloaded; an unreadable or past time is unknown.
func TestOllamaUnload(t *testing.T) {
	const epoch = int64(1_700_000_000e9)
	for stamp, want := range map[string]event.LoadedModel{
		"2023-11-14T22:13:30Z": {Until: 10e9}, "2318-01-01T00:00:00Z": {Stays: true}, "2001-01-01T00:00:00Z": {}, "soon": {}, "": {},
	} {
		if until, stays := unloadTime(stamp, epoch); until != want.Until || stays != want.Stays {
			t.Errorf("%q: %d, %v, want %+v", stamp, until, stays, want)
		}
	}
}
