package scrape

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// sums reports whether a report tells of the server as a whole.
func sums(p *event.Report) bool {
	for _, r := range []event.Reading{p.Running, p.Decode, p.Prefill, p.Generated, p.KVUsed, p.KVTotal, p.KVUsage} {
		if r.Origin != event.NotReported {
			return true
		}
	}
	return false
}

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
	if why, _ := source(p, slotsOfRunners); why != "found for 1 of 2 models" || p.Slots[0].Generated != 4 || sums(p) {
		t.Errorf("of one llama-server of two it tells %+v", p)
	}
	// That of the second model has been found since.
	addresses.Store(&[]string{one.URL, two.URL})
	p, n = until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 3 })
	if why, there := source(p, slotsOfRunners); !there || why != "" {
		t.Errorf("of both it says %q", why)
	}
	if p.Running.V != 2 || p.KVTotal.V != 2048 || p.KVUsed.V != 29 || p.Waiting.Origin != event.NotReported ||
		p.Slots[0].Slot != 0 || p.Slots[1].Slot != 1 || p.Slots[2].Slot != 2 || len(p.More) != 2 {
		t.Errorf("of both it tells %+v", p)
	}
	e, last := until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.Slots == 3 })
	if e.Name != "Ollama" {
		t.Errorf("the engine is %+v", e)
	}
	one.Close()
	addresses.Store(&[]string{two.URL})
	p, n = until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 2 })
	if why, _ := source(p, slotsOfRunners); why != "found for 1 of 2 models" || sums(p) {
		t.Errorf("when one has ended it tells %+v", p)
	}
	until(w, event.KindEngine, last, func(e *event.Engine) bool { return e.Slots == 0 })
	// Its model has been unloaded: the other one is all that Ollama has.
	f.set("/api/ps", `{"models":[`+model+`]}`)
	p, n = until(w, event.KindReport, n, func(p *event.Report) bool { return p.Running.OK() })
	if why, there := source(p, slotsOfRunners); !there || why != "" || p.Running.V != 1 || p.KVTotal.V != 1024 || len(p.Slots) != 2 {
		t.Errorf("with one model it tells %+v", p)
	}
	f.set("/slots", `nobody asks Ollama for these`)
	two.set("/slots", `{"error":{"code":501}}`)
	if p, _ := until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 0 }); sums(p) {
		t.Errorf("without any it tells %+v", p)
	} else if why, _ := source(p, slotsOfRunners); why != "none was found on this machine" {
		t.Errorf("without any it says %q", why)
	}
	if f.times("/slots") != 0 {
		t.Error("Ollama itself was asked for slots")
	}
}
