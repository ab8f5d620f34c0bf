package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// setRouterPages sets the pages of a router with two models. tokens has their generated tokens; a model without tokens
// is not loaded.
func setRouterPages(f *fake, tokens map[string]int) {
	var list []string
	for _, name := range []string{"a", "b"} {
		n, status := tokens[name], "unloaded"
		if n > 0 {
			status = "loaded"
			f.setPage("/metrics?model="+name, fmt.Sprintf("llamacpp:tokens_predicted_total %d\nllamacpp:prompt_tokens_total %d\n"+
				"llamacpp:prompt_tokens_cached_total %d\nllamacpp:requests_deferred 2\nllamacpp:requests_processing 0\n", n, 3*n, n))
			f.setPage("/slots?model="+name, `[{"id":0,"n_ctx":64},{"id":1,"n_ctx":64}]`)
		}
		list = append(list, fmt.Sprintf(`{"id":%q,"owned_by":"llamacpp","status":{"value":%q}}`, name, status))
	}
	f.setPage("/v1/models", `{"object":"list","data":[`+strings.Join(list, ",")+`]}`)
}

// TestRouterModelsCountSeparately: each model has a process with its own counters, which begin at 0 when it is loaded.
// What a model has counted before the first poll of its counters is of the session, if it was loaded meanwhile: the
// request that loads it counts. Unloading one and loading another is no restart. With several models, the report has
// the sum.
func TestRouterModelsCountSeparately(t *testing.T) {
	f := newFake(t, map[string]string{"/props": routerProps})
	setRouterPages(f, map[string]int{"a": 100})
	events := make(chan string)
	serveLoadEvents(f, events)
	w := startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
		why, there := endpoint(p, loadsPath)
		return there && why == "" && len(p.Slots) == 2 && p.Generated.OK()
	})
	begin, models := n, 0
	change := func(unloaded, loaded, name string, tokens map[string]int) {
		t.Helper()
		setRouterPages(f, tokens)
		if unloaded != "" {
			events <- loadEvent(unloaded, "status_change", `{"status":"unloaded"}`)
		}
		if loaded != "" {
			events <- loadEvent(loaded, "status_change", `{"status":"loaded"}`)
		}
		_, models = waitFor(w, event.KindModel, models, func(m *event.Model) bool { return m.Name == name })
		n = len(w.log.OfKind(event.KindAggregates))
		_, n = waitFor(w, event.KindAggregates, n+2, func(p *event.Aggregates) bool { return p.Generated.OK() })
	}
	change("a", "b", "b", map[string]int{"b": 50_000})
	change("b", "a", "a", map[string]int{"a": 100})
	change("", "b", "a and 1 more", map[string]int{"a": 100, "b": 50_000})
	p, n := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.Slots) == 4 })
	if p.Waiting.V != 4 || p.KVTotal.V != 4*64 || p.Slots[3].Slot != 3 {
		t.Errorf("both models:\n%s%+v", describe(p), p.Slots)
	}
	if m := p.ByModel; len(m) != 2 || m[0].Name != "a" || m[1].Name != "b" || m[0].Waiting.V != 2 || m[1].Waiting.V != 2 || !m[1].KVUsage.OK() {
		t.Errorf("by model: %+v", m)
	}
	setRouterPages(f, map[string]int{"a": 130, "b": 50_400})
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.CacheHits.V == 0.25 })
	waitFor(w, event.KindAggregates, len(w.log.OfKind(event.KindAggregates))+5, func(*event.Aggregates) bool { return true })
	generated, prompt := 0.0, 0.0
	for _, e := range w.log.OfKind(event.KindAggregates)[begin:] {
		p := e.Data.(*event.Aggregates)
		generated, prompt = generated+p.Generated.V, prompt+p.Prompt.V
	}
	if want := 50_000.0 + 100 + 50_000 + 30 + 400; generated != want || prompt != 4*want {
		t.Errorf("%v generated and %v prompt tokens, want %v and 4 times as many", generated, prompt, want)
	}
	if e, _ := w.waitForLink(event.LinkConnected, "", 0); e.Name != "llama.cpp" || w.restarts() != 0 {
		t.Errorf("%s: %d restarts", e.Name, w.restarts())
	}
}

// TestRouterModelWithoutMetrics checks that such a model has its slots, and a reason that names it.
func TestRouterModelWithoutMetrics(t *testing.T) {
	f := newFake(t, map[string]string{"/props": routerProps})
	setRouterPages(f, map[string]int{"a": 100, "b": 200})
	f.setPage("/metrics?model=b", "<html>who?</html>")
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 2, func(p *event.Aggregates) bool { return p.Generated.OK() })
	if why, _ := endpoint(p, "/metrics"); !strings.HasPrefix(why, "b: ") || len(p.Slots) != 4 || p.Waiting.V != 2 {
		t.Errorf("metrics: %q\n%s", why, describe(p))
	}
}

// restarts returns the last reported number of restarts.
func (w *runningPoller) restarts() int {
	list := w.log.OfKind(event.KindEngine)
	return list[len(list)-1].Data.(*event.EngineInfo).Remote.Restarts
}

// TestHitsOfEndedPrompts: llama.cpp counts cached tokens when a prompt begins and computed ones batch by batch. The hits
// are those of prompts that have ended, wherever the polls fall.
func TestHitsOfEndedPrompts(t *testing.T) {
	type poll struct {
		cached, computed float64 // that the counters gain
		slots            []slot  // nil: not readable
		running          float64
	}
	at := func(cached, processed, decoded int) slot {
		return slot{Processing: true, Cached: cached, Processed: processed, Next: nextToken{Decoded: decoded}}
	}
	idle := []slot{{}}
	for name, c := range map[string]struct {
		polls  []poll
		hits   float64 // cached tokens of ended prompts
		prompt float64 // all tokens of ended prompts
	}{
		"a prompt over four polls":    {[]poll{{slots: idle}, {740, 0, []slot{at(740, 0, 0)}, 1}, {0, 100, []slot{at(740, 100, 0)}, 1}, {0, 160, []slot{at(740, 260, 3)}, 1}, {0, 0, idle, 0}}, 740, 1000},
		"between two polls":           {[]poll{{slots: idle}, {740, 260, idle, 0}}, 740, 1000},
		"still at its prompt":         {[]poll{{slots: idle}, {740, 100, []slot{at(740, 100, 0)}, 1}}, 0, 0},
		"the counter lags":            {[]poll{{slots: idle}, {740, 0, []slot{at(740, 200, 0)}, 1}, {0, 260, []slot{at(740, 260, 1)}, 1}}, 740, 1000},
		"the slot is ahead":           {[]poll{{slots: idle}, {0, 0, []slot{at(740, 10, 0)}, 1}, {740, 260, []slot{at(740, 260, 1)}, 1}}, 740, 1000},
		"began before the first poll": {[]poll{{slots: []slot{at(740, 100, 0)}, running: 1}, {0, 160, []slot{at(740, 260, 5)}, 1}}, 740, 1000},
		"one ends, one begins":        {[]poll{{slots: idle}, {740, 100, []slot{at(740, 100, 0), {}}, 1}, {300, 160, []slot{at(740, 260, 1), at(300, 0, 0)}, 2}}, 740, 1000},
		"no slots":                    {[]poll{{}, {740, 0, nil, 1}, {0, 260, nil, 1}, {0, 0, nil, 0}}, 740, 1000},
		"no slots, running":           {[]poll{{}, {740, 260, nil, 1}}, 0, 0},
	} {
		m := &llamaModel{metrics: &metrics{}}
		hits, prompt := 0.0, 0.0
		for i, p := range c.polls {
			report := &event.Aggregates{
				Running: event.ReportedValue(p.running), Cached: event.DerivedValue(p.cached), Prompt: event.DerivedValue(p.cached + p.computed),
				Ratios: []event.Ratio{{Name: event.RatioCacheHits, Part: event.ReportedValue(p.cached), Whole: event.ReportedValue(p.cached + p.computed)}},
			}
			before := m.countersAt
			m.countersAt = event.Time(i + 1)
			m.countHits(report, before, p.slots)
			for _, r := range report.Ratios {
				hits, prompt = hits+r.Part.V, prompt+r.Whole.V
				if got := r.Part.V / r.Whole.V; got != 0.74 || report.CacheHits.V != got {
					t.Errorf("%s: poll %d has hits of %v, %+v", name, i, got, report.CacheHits)
				}
			}
		}
		if hits != c.hits || prompt != c.prompt {
			t.Errorf("%s: %v of %v tokens, want %v of %v", name, hits, prompt, c.hits, c.prompt)
		}
	}
}
