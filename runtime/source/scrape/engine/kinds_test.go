package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestOllama(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": modelList("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": sampleOf(t, "ollama_ps.json")})
	w := startPoller(t, Options{Address: f.URL})
	m, _ := waitFor(w, event.KindModel, 0, func(*event.Model) bool { return true })
	if m.Name != "qwen3:30b-a3b" || m.Parameters != 30_500_000_000 || m.Quantisation != "Q4_K_M" || m.Context != 8192 {
		t.Errorf("model %+v", m)
	}
	p, n := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if len(p.More) != 2 || p.More[0].V != 1 || p.Running.Origin != event.NotReported || p.Decode.Origin != event.NotReported {
		t.Errorf("report %+v", p)
	}
	f.setPage("/api/ps", `{"models":[]}`)
	waitFor(w, event.KindModel, 1, func(m *event.Model) bool { return m.Name == "" })
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return len(p.More) == 0 })
}

func TestSGLangWithoutMetrics(t *testing.T) {
	f := newFake(t, map[string]string{
		"/v1/models": modelList("sglang"), "/v1/loads?include=core": sampleOf(t, "sglang_v1_loads.json"),
		"/server_info": strings.ReplaceAll(sampleOf(t, "sglang_server_info.json"), `"enable_metrics": true`, `"enable_metrics": false`),
	})
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if p.Running.V != 6 || p.Waiting.V != 2 || p.KVUsage.V != 0.41 || p.KVTotal.V != 409600 || p.Decode.V != 388.1 || p.CacheHits.V != 0.37 || p.Generated.OK() {
		t.Errorf("report %+v", p)
	}
	if e, _ := w.waitForLink(event.LinkConnected, "", 0); e.Version != "0.5.17" || f.requestCount("/metrics") > 0 {
		t.Errorf("%+v, %d requests for metrics that it does not have", e, f.requestCount("/metrics"))
	}
}

func TestTensorRTDrain(t *testing.T) {
	for _, drain := range []bool{false, true} {
		f := newFake(t, map[string]string{"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.2.0"}`, "/metrics": sampleOf(t, "trtllm_metrics_iteration.json")})
		w := startPoller(t, Options{Address: f.URL, Drain: drain})
		_, n := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
		p, _ := waitFor(w, event.KindAggregates, n, func(*event.Aggregates) bool { return true })
		warned := false
		for _, e := range w.log.OfKind(event.KindLog) {
			warned = warned || strings.Contains(e.Text, "other readers miss the iterations")
		}
		switch {
		case !drain && (f.requestCount("/metrics") > 0 || warned || p.Running.OK()):
			t.Errorf("drained %d times: %+v", f.requestCount("/metrics"), p)
		case drain && (!warned || p.Running.V != 1 || p.KVTotal.V != 101256*32 || len(p.Histograms) != 1 || p.Histograms[0].Sum != 7006000):
			t.Errorf("warned %v, %+v", warned, p)
		}
	}
}

// TestServersWithoutMetrics checks that the list of models is polled, so that an unreachable server is noticed.
func TestServersWithoutMetrics(t *testing.T) {
	for name, pages := range map[string]map[string]string{
		"TensorRT-LLM": {"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.2.0"}`},
		"SGLang":       {"/v1/models": modelList("sglang"), "/server_info": `{"version":"0.4.0","enable_metrics":false}`},
	} {
		f := newFake(t, pages)
		w := startPoller(t, Options{Address: f.URL})
		p, _ := waitFor(w, event.KindAggregates, 2, func(*event.Aggregates) bool { return true })
		if why, there := endpoint(p, "/v1/models"); !there || why != "" {
			t.Errorf("%s: endpoints %+v", name, p.Endpoints)
		}
		e, n := w.waitForLink(event.LinkConnected, "", 0)
		if e.Name != name {
			t.Errorf("%s: engine %+v", name, e)
		}
		f.Close()
		w.waitForLink(event.LinkDisconnected, "", n)
	}
}

func TestVLLMWithoutMetrics(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": modelList("vllm"), "/metrics": "python_info 1\n", "/load": `{"server_load": 0}`})
	w := startPoller(t, Options{Address: f.URL})
	p, n := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if p.Running.OK() {
		t.Errorf("%v running requests, though the server may not count them", p.Running.V)
	}
	f.setPage("/load", `{"server_load": 7}`)
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.V == 7 })
}

// TestSleepingVLLM expects the state paused during sleep mode.
func TestSleepingVLLM(t *testing.T) {
	const state = "vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state=\"awake\"} %[1]d\nvllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} %[2]d\n" +
		"vllm:engine_sleep_state{sleep_state=\"discard_all\"} 0\n"
	f := newFake(t, map[string]string{"/v1/models": modelList("vllm"), "/metrics": fmt.Sprintf(state, 1, 0)})
	w := startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	e, n := w.waitForLink(event.LinkConnected, "", 0)
	if e.State != event.EngineReady {
		t.Errorf("state %v while awake", e.State)
	}
	f.setPage("/metrics", fmt.Sprintf(state, 0, 1))
	_, n = waitFor(w, event.KindEngine, n, func(e *event.EngineInfo) bool { return e.State == event.EnginePaused && e.Reason != "" })
	f.setPage("/metrics", fmt.Sprintf(state, 1, 0))
	waitFor(w, event.KindEngine, n, func(e *event.EngineInfo) bool { return e.State == event.EngineReady })
}

func TestUnknownServerListsModels(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": modelList("acme")})
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if line, err := json.Marshal(p); err != nil || p.Running.Origin != event.NotReported || p.Decode.Origin != event.NotReported {
		t.Errorf("%s, %v", line, err)
	}
	waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "m" })
}

func llamaPages(t *testing.T) map[string]string {
	return map[string]string{
		"/v1/models": modelList("llamacpp"), "/props": sampleOf(t, "llamacpp_props.json"), "/slots": sampleOf(t, "llamacpp_slots.json"),
		"/metrics": "llamacpp:tokens_predicted_total 5120\nllamacpp:requests_deferred 1\nllamacpp:requests_processing 2\nllamacpp:predicted_tokens_seconds 38.95\n",
	}
}

func TestSlots(t *testing.T) {
	f := newFake(t, llamaPages(t))
	w := startPoller(t, Options{Address: f.URL})
	p, n := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	want := event.Slot{Slot: 0, Request: 1, Prompt: 1181, Processed: 1181, Cached: 512, Generated: 285, Max: 512, Used: 1466, Context: 8192}
	if len(p.Slots) != 4 || p.Slots[0] != want || p.Slots[1].Generated != 0 || p.Slots[1].Prompt != 2048 || p.Slots[2].Request != 0 {
		t.Errorf("slots %+v, want the first one %+v", p.Slots, want)
	}
	if p.Running.V != 2 || p.Waiting.V != 1 || p.KVTotal.V != 4*8192 || p.Decode.OK() || p.Generated.OK() {
		t.Errorf("first report %+v", p)
	}
	f.setPage("/slots", strings.Replace(sampleOf(t, "llamacpp_slots.json"), `"n_decoded": 285`, `"n_decoded": 325`, 1))
	p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Generated.V > 0 })
	if p.Generated.V != 40 || p.Slots[0].Request != 1 {
		t.Errorf("after 40 tokens %+v", p)
	}
	if p, _ := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return p.Decode.OK() && p.Decode.V > 0 }); p.Decode.V > 40*1e9/float64(rateWindow) {
		t.Errorf("40 tokens in at least %v give %v tokens/s", time.Duration(rateWindow), p.Decode.V)
	}
	// The request ends with 345 tokens in the server's counter: polls saw 20 fewer.
	f.setPage("/metrics", strings.Replace(llamaPages(t)["/metrics"], "5120", "5465", 1))
	f.setPage("/slots", `[{"id":0,"n_ctx":8192,"is_processing":false},{"id":1,"n_ctx":8192,"is_processing":true,"id_task":50,"next_token":{"n_decoded":1}}]`)
	sum := 0.0
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
		if len(p.Slots) == 2 && p.Slots[1].Request != 3 {
			t.Errorf("the new task in the slot has ID %d, want 3", p.Slots[1].Request)
		}
		sum += p.Generated.V
		return sum >= 21
	})
}

// TestIdleSlotsAreNotPolled: polling slots keeps a server awake, so they are not polled while the metrics show no work.
func TestIdleSlotsAreNotPolled(t *testing.T) {
	const idle = `[{"id":0,"n_ctx":8192,"is_processing":false}]`
	pages := llamaPages(t)
	pages["/slots"] = idle
	pages["/metrics"] = "llamacpp:tokens_predicted_total 5120\nllamacpp:requests_deferred 0\nllamacpp:requests_processing 0\n"
	f := newFake(t, pages)
	w := startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindAggregates, 6, func(p *event.Aggregates) bool { return len(p.Slots) == 1 && p.KVTotal.V == 8192 })
	if requests := f.requestCount("/slots"); requests != 1 {
		t.Errorf("slots of an idle server were polled %d times", requests)
	}
	f.setPage("/slots", sampleOf(t, "llamacpp_slots.json"))
	f.setPage("/metrics", llamaPages(t)["/metrics"])
	_, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.V == 2 && len(p.Slots) == 4 })
	// A request between two polls shows in the counter of generated tokens.
	f.setPage("/slots", idle)
	f.setPage("/metrics", "llamacpp:tokens_predicted_total 5520\nllamacpp:requests_deferred 0\nllamacpp:requests_processing 0\n")
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
		return p.Running.V == 0 && len(p.Slots) == 1 && p.Slots[0].Request == 0
	})
}

// TestGrowingPromptLength: newer servers report only the processed part of a prompt.
func TestGrowingPromptLength(t *testing.T) {
	s := slotTracker{ids: new(atomic.Uint64)}
	for i, c := range []struct {
		slot             slot
		prompt, progress int
	}{
		{slot{Tokens: 32}, 32, 0}, // the best value so far
		{slot{Tokens: 64, Processed: 32}, 0, 32},
		{slot{Tokens: 71, Processed: 64}, 0, 64},
		{slot{Tokens: 81, Processed: 71, Next: nextToken{Decoded: 10}}, 71, 71},
	} {
		c.slot.Context, c.slot.Processing = 1024, true
		p := &event.Aggregates{Interval: int64(i)}
		s.update([]slot{c.slot}, event.Time(i+1)*1e9, p)
		if got := p.Slots[0]; got.Prompt != c.prompt || got.Processed != c.progress || got.Used != c.slot.Tokens {
			t.Errorf("poll %d: %+v, want a prompt of %d with %d processed", i, got, c.prompt, c.progress)
		}
	}
}

func TestSleepingServerIsNotWoken(t *testing.T) {
	pages := llamaPages(t)
	pages["/props"] = strings.Replace(pages["/props"], `"is_sleeping": false`, `"is_sleeping": true`, 1)
	f := newFake(t, pages)
	w := startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.State == event.EnginePaused })
	waitFor(w, event.KindAggregates, 2, func(*event.Aggregates) bool { return true })
	if n := f.requestCount("/slots"); n > 0 {
		t.Errorf("slots were polled %d times, which wakes the server", n)
	}
}

func TestRouterPollsOnlyLoadedModels(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"a","owned_by":"llamacpp","status":{"value":"unloaded"}},{"id":"b c","owned_by":"llamacpp","status":{"value":%q}}]}`
	f := newFake(t, map[string]string{
		"/v1/models": strings.Replace(list, "%q", `"loaded"`, 1), "/props": routerProps,
		"/slots?model=b+c": sampleOf(t, "llamacpp_slots.json"),
	})
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if len(p.Slots) != 4 {
		t.Errorf("report %+v", p)
	}
	waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "b c" })

	f = newFake(t, map[string]string{"/v1/models": strings.Replace(list, "%q", `"sleeping"`, 1), "/props": routerProps})
	w = startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindAggregates, 1, func(*event.Aggregates) bool { return true })
	if f.requestCount("/slots")+f.requestCount("/metrics") > 0 {
		t.Error("a model that is not loaded was polled, which loads it")
	}
}

func FuzzSlots(f *testing.F) {
	f.Add([]byte(sampleOf(f, "llamacpp_slots.json")), []byte(`[{"id":0,"is_processing":true,"next_token":{"n_decoded":9}}]`))
	f.Add([]byte(`[{"id":-1,"n_ctx":-5,"is_processing":true,"n_prompt_tokens":-9,"next_token":[]}]`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := slotTracker{ids: new(atomic.Uint64)}
		for i, raw := range [][]byte{a, b, a} {
			var list []slot
			if json.Unmarshal(raw, &list) != nil {
				continue
			}
			p := &event.Aggregates{Interval: int64(i)}
			s.update(list, event.Time(i+1)*1e9, p)
			if p.Generated.V < 0 || p.Decode.V < 0 || p.KVUsage.V < 0 || p.KVUsage.V > 1 {
				t.Errorf("%+v", p)
			}
		}
	})
}
