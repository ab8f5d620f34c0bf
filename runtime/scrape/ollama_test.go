package scrape

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestOllamasRunners: the slots of the llama-servers that an Ollama has started are told as its own, and are no more when those have ended.
func TestOllamasRunners(t *testing.T) {
	one := newFake(t, map[string]string{"/slots": `[{"id":0,"n_ctx":1024,"is_processing":true,"id_task":3,"n_prompt_tokens":9,"next_token":[{"n_decoded":4}]}]`})
	two := newFake(t, map[string]string{"/slots": `[{"id":0,"n_ctx":512,"is_processing":false},{"id":1,"n_ctx":512,"is_processing":true,"id_task":8,"n_prompt_tokens":20}]`})
	ps := sampleOf(t, "ollama_ps.json")
	model := strings.TrimSuffix(strings.SplitN(ps, "[", 2)[1], "]\n}\n")
	both := `{"models":[` + model + `,` + strings.ReplaceAll(model, "qwen3:30b-a3b", "another") + `]}`
	f := newFake(t, map[string]string{"/v1/models": models("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": both})
	var addresses atomic.Pointer[[]string]
	addresses.Store(&[]string{one.URL})
	w := watchIt(t, Options{Address: f.URL, Runners: func() []string { return *addresses.Load() }})
	p, n := until(w, event.KindReport, 0, func(p *event.Report) bool { return len(p.Slots) == 1 })
	if p.Running.V != 1 || p.KVTotal.V != 1024 || p.KVUsed.V != 9 || p.Slots[0].Generated != 4 || p.Waiting.Origin != event.NotReported {
		t.Errorf("of one llama-server it tells %+v", p)
	}
	// The second model has been loaded since.
	addresses.Store(&[]string{one.URL, two.URL})
	p, n = until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 3 })
	if p.Running.V != 2 || p.KVTotal.V != 2048 || p.Slots[0].Slot != 0 || p.Slots[1].Slot != 1 || p.Slots[2].Slot != 2 || len(p.More) != 2 {
		t.Errorf("of both it tells %+v", p)
	}
	if e, _ := until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.Slots == 3 }); e.Name != "Ollama" {
		t.Errorf("the engine is %+v", e)
	}
	one.Close()
	addresses.Store(&[]string{two.URL})
	p, n = until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 2 })
	if p.Running.V != 1 || p.KVTotal.V != 1024 {
		t.Errorf("when one has ended it tells %+v", p)
	}
	f.set("/slots", `nobody asks Ollama for these`)
	two.set("/slots", `{"error":{"code":501}}`)
	if p, _ := until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 0 }); p.Running.OK() || p.Decode.OK() || p.KVUsage.OK() {
		t.Errorf("without any it tells %+v", p)
	}
	if f.times("/slots") != 0 {
		t.Error("Ollama itself was asked for slots")
	}
}
