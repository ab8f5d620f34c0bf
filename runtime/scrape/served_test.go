package scrape

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// routed are the pages of a router of two models; tokens are what they have generated so far, and a model without any is not loaded.
func routed(f *fake, tokens map[string]int) {
	var list []string
	for _, name := range []string{"a", "b"} {
		n, status := tokens[name], "unloaded"
		if n > 0 {
			status = "loaded"
			f.set("/metrics?model="+name, fmt.Sprintf("llamacpp:tokens_predicted_total %d\nllamacpp:prompt_tokens_total %d\n"+
				"llamacpp:prompt_tokens_cached_total %d\nllamacpp:requests_deferred 2\nllamacpp:requests_processing 0\n", n, 3*n, n))
			f.set("/slots?model="+name, `[{"id":0,"n_ctx":64},{"id":1,"n_ctx":64}]`)
		}
		list = append(list, fmt.Sprintf(`{"id":%q,"owned_by":"llamacpp","status":{"value":%q}}`, name, status))
	}
	f.set("/v1/models", `{"object":"list","data":[`+strings.Join(list, ",")+`]}`)
}

// TestTheModelsOfARouterCountEachForItself: each has a process with counters of its own. One that is unloaded and another one that is loaded are no
// gain and no restart, and of several the sum is told.
func TestTheModelsOfARouterCountEachForItself(t *testing.T) {
	f := newFake(t, map[string]string{"/props": routerProps})
	routed(f, map[string]int{"a": 100})
	says := make(chan string)
	telling(f, says)
	w := watchIt(t, Options{Address: f.URL})
	_, n := until(w, event.KindReport, 0, func(p *event.Report) bool {
		why, there := source(p, loadsPath)
		return there && why == "" && len(p.Slots) == 2 && p.Generated.OK()
	})
	begin, models := n, 0
	become := func(gone, come, name string, tokens map[string]int) {
		t.Helper()
		routed(f, tokens)
		if gone != "" {
			says <- message(gone, "status_change", `{"status":"unloaded"}`)
		}
		if come != "" {
			says <- message(come, "status_change", `{"status":"loaded"}`)
		}
		_, models = until(w, event.KindModel, models, func(m *event.Model) bool { return m.Name == name })
		n = len(w.log.Of(event.KindReport))
		_, n = until(w, event.KindReport, n+2, func(p *event.Report) bool { return p.Generated.OK() })
	}
	become("a", "b", "b", map[string]int{"b": 50_000})
	become("b", "a", "a", map[string]int{"a": 100})
	become("", "b", "a and 1 more", map[string]int{"a": 100, "b": 50_000})
	p, n := until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.Slots) == 4 })
	if p.Waiting.V != 4 || p.KVTotal.V != 4*64 || p.Slots[3].Slot != 3 {
		t.Errorf("of both models\n%s%+v", rows(p), p.Slots)
	}
	routed(f, map[string]int{"a": 130, "b": 50_400})
	until(w, event.KindReport, n, func(p *event.Report) bool { return p.CacheHits.V == 0.25 })
	until(w, event.KindReport, len(w.log.Of(event.KindReport))+5, func(*event.Report) bool { return true })
	generated, prompt := 0.0, 0.0
	for _, e := range w.log.Of(event.KindReport)[begin:] {
		p := e.Data.(*event.Report)
		generated, prompt = generated+p.Generated.V, prompt+p.Prompt.V
	}
	if generated != 30+400 || prompt != 4*(30+400) {
		t.Errorf("%v tokens were generated and %v were in prompts, want 430 and four times that", generated, prompt)
	}
	if e, _ := w.linked(event.LinkConnected, "", 0); e.Name != "llama.cpp" || w.restarts() != 0 {
		t.Errorf("%s was started anew %d times", e.Name, w.restarts())
	}
}

// TestAModelOfARouterThatDoesNotAnswer is left out, and named.
func TestAModelOfARouterThatDoesNotAnswer(t *testing.T) {
	f := newFake(t, map[string]string{"/props": routerProps})
	routed(f, map[string]int{"a": 100, "b": 200})
	f.set("/metrics?model=b", "<html>who?</html>")
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 2, func(p *event.Report) bool { return p.Generated.OK() })
	if why, _ := source(p, "/metrics"); !strings.HasPrefix(why, "b: the server ") || len(p.Slots) != 2 || p.Waiting.V != 2 {
		t.Errorf("metrics: %q\n%s", why, rows(p))
	}
}

// restarts is how often the server was started anew, as far as was told.
func (w *watching) restarts() int {
	list := w.log.Of(event.KindEngine)
	return list[len(list)-1].Data.(*event.Engine).Remote.Restarts
}
