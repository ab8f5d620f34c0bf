package scrape

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/prober"
)

func TestOllama(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": models("library"), "/api/version": `{"version":"0.33.0"}`, "/api/ps": sampleOf(t, "ollama_ps.json")})
	w := watchIt(t, Options{Address: f.URL})
	m, _ := until(w, event.KindModel, 0, func(*event.Model) bool { return true })
	if m.Name != "qwen3:30b-a3b" || m.Parameters != 30_500_000_000 || m.Quantisation != "Q4_K_M" || m.Context != 8192 {
		t.Errorf("the model is %+v", m)
	}
	p, n := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if len(p.More) != 2 || p.More[0].V != 1 || p.Running.Origin != event.NotReported || p.Decode.Origin != event.NotReported {
		t.Errorf("the report is %+v", p)
	}
	f.set("/api/ps", `{"models":[]}`)
	until(w, event.KindModel, 1, func(m *event.Model) bool { return m.Name == "" })
	until(w, event.KindReport, n, func(p *event.Report) bool { return len(p.More) == 0 })
}

func TestSGLangWithoutMetrics(t *testing.T) {
	f := newFake(t, map[string]string{
		"/v1/models": models("sglang"), "/v1/loads?include=core": sampleOf(t, "sglang_v1_loads.json"),
		"/server_info": strings.ReplaceAll(sampleOf(t, "sglang_server_info.json"), `"enable_metrics": true`, `"enable_metrics": false`),
	})
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if p.Running.V != 6 || p.Waiting.V != 2 || p.KVUsage.V != 0.41 || p.KVTotal.V != 409600 || p.Decode.V != 388.1 || p.CacheHits.V != 0.37 || p.Generated.OK() {
		t.Errorf("the report is %+v", p)
	}
	if e, _ := w.linked(event.LinkConnected, "", 0); e.Version != "0.5.17" || f.times("/metrics") > 0 {
		t.Errorf("%+v, asked %d times for metrics that it has not", e, f.times("/metrics"))
	}
}

func TestTensorRTIsNotDrained(t *testing.T) {
	for _, drain := range []bool{false, true} {
		f := newFake(t, map[string]string{"/v1/models": models("tensorrt_llm"), "/version": `{"version":"1.2.0"}`, "/metrics": sampleOf(t, "trtllm_metrics_iteration.json")})
		w := watchIt(t, Options{Address: f.URL, Drain: drain})
		p, n := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
		until(w, event.KindReport, n, func(*event.Report) bool { return true })
		warned := false
		for _, e := range w.log.Of(event.KindLog) {
			warned = warned || strings.Contains(e.Text, "no other reader gets")
		}
		switch {
		case !drain && (f.times("/metrics") > 0 || warned || p.Running.OK()):
			t.Errorf("it was drained %d times: %+v", f.times("/metrics"), p)
		case drain && (!warned || p.Running.V != 1 || p.KVTotal.V != 101256*32 || len(p.Times) != 1 || p.Times[0].Sum != 7006000):
			t.Errorf("warned %v, %+v", warned, p)
		}
	}
}

// TestServersThatTellNothing are asked for their models, so that it shows when they are gone.
func TestServersThatTellNothing(t *testing.T) {
	for name, pages := range map[string]map[string]string{
		"TensorRT-LLM": {"/v1/models": models("tensorrt_llm"), "/version": `{"version":"1.2.0"}`},
		"SGLang":       {"/v1/models": models("sglang"), "/server_info": `{"version":"0.4.0","enable_metrics":false}`},
	} {
		f := newFake(t, pages)
		w := watchIt(t, Options{Address: f.URL})
		p, _ := until(w, event.KindReport, 2, func(*event.Report) bool { return true })
		if why, there := source(p, "/v1/models"); !there || why != "" {
			t.Errorf("%s: the sources are %+v", name, p.Sources)
		}
		e, n := w.linked(event.LinkConnected, "", 0)
		if e.Name != name {
			t.Errorf("%s: it is %+v", name, e)
		}
		f.Close()
		w.linked(event.LinkDisconnected, "", n)
	}
}

func TestVLLMWithoutMetrics(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": models("vllm"), "/metrics": "python_info 1\n", "/load": `{"server_load": 0}`})
	w := watchIt(t, Options{Address: f.URL})
	p, n := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if p.Running.OK() {
		t.Errorf("it may count nothing, and %v run", p.Running.V)
	}
	f.set("/load", `{"server_load": 7}`)
	until(w, event.KindReport, n, func(p *event.Report) bool { return p.Running.V == 7 })
}

// TestASleepingVLLM is told as paused, until it is woken.
func TestASleepingVLLM(t *testing.T) {
	const state = "vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state=\"awake\"} %[1]d\nvllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} %[2]d\n" +
		"vllm:engine_sleep_state{sleep_state=\"discard_all\"} 0\n"
	f := newFake(t, map[string]string{"/v1/models": models("vllm"), "/metrics": fmt.Sprintf(state, 1, 0)})
	w := watchIt(t, Options{Address: f.URL})
	until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	e, n := w.linked(event.LinkConnected, "", 0)
	if e.State != event.EngineReady {
		t.Errorf("awake it is %v", e.State)
	}
	f.set("/metrics", fmt.Sprintf(state, 0, 1))
	_, n = until(w, event.KindEngine, n, func(e *event.Engine) bool { return e.State == event.EnginePaused && e.Reason != "" })
	f.set("/metrics", fmt.Sprintf(state, 1, 0))
	until(w, event.KindEngine, n, func(e *event.Engine) bool { return e.State == event.EngineReady })
}

func TestAServerOfWhichOnlyItsModelsAreKnown(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": models("acme")})
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if line, err := json.Marshal(p); err != nil || p.Running.Origin != event.NotReported || p.Decode.Origin != event.NotReported {
		t.Errorf("%s, %v", line, err)
	}
	until(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "m" })
}

func llamaPages(t *testing.T) map[string]string {
	return map[string]string{
		"/v1/models": models("llamacpp"), "/props": sampleOf(t, "llamacpp_props.json"), "/slots": sampleOf(t, "llamacpp_slots.json"),
		"/metrics": "llamacpp:tokens_predicted_total 5120\nllamacpp:requests_deferred 1\nllamacpp:requests_processing 2\nllamacpp:predicted_tokens_seconds 38.95\n",
	}
}

func TestSlots(t *testing.T) {
	f := newFake(t, llamaPages(t))
	w := watchIt(t, Options{Address: f.URL})
	p, n := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	want := event.Slot{Slot: 0, Request: 1, Prompt: 1181, Processed: 1181, Cached: 512, Generated: 285, Max: 512, Used: 1466, Context: 8192}
	if len(p.Slots) != 4 || p.Slots[0] != want || p.Slots[1].Generated != 0 || p.Slots[1].Prompt != 2048 || p.Slots[2].Request != 0 {
		t.Errorf("the slots are %+v, want the first one %+v", p.Slots, want)
	}
	if p.Running.V != 2 || p.Waiting.V != 1 || p.KVTotal.V != 4*8192 || p.Decode.OK() || p.Generated.OK() {
		t.Errorf("the first report is %+v", p)
	}
	f.set("/slots", strings.Replace(sampleOf(t, "llamacpp_slots.json"), `"n_decoded": 285`, `"n_decoded": 325`, 1))
	p, n = until(w, event.KindReport, n, func(p *event.Report) bool { return p.Generated.V > 0 })
	if p.Generated.V != 40 || p.Slots[0].Request != 1 {
		t.Errorf("after 40 tokens %+v", p)
	}
	if p, _ := until(w, event.KindReport, 0, func(p *event.Report) bool { return p.Decode.OK() && p.Decode.V > 0 }); p.Decode.V > 40*1e9/float64(ratesOver) {
		t.Errorf("of 40 tokens in %v or more %v tokens/s", time.Duration(ratesOver), p.Decode.V)
	}
	// The request ends with 345 tokens, which the server counts now: 20 of them nobody has seen.
	f.set("/metrics", strings.Replace(llamaPages(t)["/metrics"], "5120", "5465", 1))
	f.set("/slots", `[{"id":0,"n_ctx":8192,"is_processing":false},{"id":1,"n_ctx":8192,"is_processing":true,"id_task":50,"next_token":{"n_decoded":1}}]`)
	sum := 0.0
	until(w, event.KindReport, n, func(p *event.Report) bool {
		if len(p.Slots) == 2 && p.Slots[1].Request != 3 {
			t.Errorf("another task in the slot is request %d, want 3", p.Slots[1].Request)
		}
		sum += p.Generated.V
		return sum >= 21
	})
}

// TestAnIdleServerMayFallAsleep: being asked for its slots keeps a server awake, so where its metrics say that nothing is at work, it is not.
func TestAnIdleServerMayFallAsleep(t *testing.T) {
	const idle = `[{"id":0,"n_ctx":8192,"is_processing":false}]`
	pages := llamaPages(t)
	pages["/slots"] = idle
	pages["/metrics"] = "llamacpp:tokens_predicted_total 5120\nllamacpp:requests_deferred 0\nllamacpp:requests_processing 0\n"
	f := newFake(t, pages)
	w := watchIt(t, Options{Address: f.URL})
	_, n := until(w, event.KindReport, 6, func(p *event.Report) bool { return len(p.Slots) == 1 && p.KVTotal.V == 8192 })
	if asked := f.times("/slots"); asked != 1 {
		t.Errorf("an idle server was asked %d times for its slots", asked)
	}
	f.set("/slots", sampleOf(t, "llamacpp_slots.json"))
	f.set("/metrics", llamaPages(t)["/metrics"])
	_, n = until(w, event.KindReport, n, func(p *event.Report) bool { return p.Running.V == 2 && len(p.Slots) == 4 })
	// A request that came and went between two looks is seen by what it has generated.
	f.set("/slots", idle)
	f.set("/metrics", "llamacpp:tokens_predicted_total 5520\nllamacpp:requests_deferred 0\nllamacpp:requests_processing 0\n")
	until(w, event.KindReport, n, func(p *event.Report) bool { return p.Running.V == 0 && len(p.Slots) == 1 && p.Slots[0].Request == 0 })
}

// TestAPromptOfUnknownLength: newer servers tell of a prompt only what they have taken of it so far.
func TestAPromptOfUnknownLength(t *testing.T) {
	s := slots{shared: new(prober.Shared)}
	for i, c := range []struct {
		told             slot
		prompt, progress int
	}{
		{slot{Tokens: 32}, 32, 0}, // as long as nothing else is known
		{slot{Tokens: 64, Processed: 32}, 0, 32},
		{slot{Tokens: 71, Processed: 64}, 0, 64},
		{slot{Tokens: 81, Processed: 71, Next: nextToken{Decoded: 10}}, 71, 71},
	} {
		c.told.Context, c.told.Processing = 1024, true
		p := &event.Report{Interval: int64(i)}
		s.follow([]slot{c.told}, event.Time(i+1)*1e9, p)
		if got := p.Slots[0]; got.Prompt != c.prompt || got.Processed != c.progress || got.Used != c.told.Tokens {
			t.Errorf("look %d: %+v, want a prompt of %d with %d processed", i, got, c.prompt, c.progress)
		}
	}
}

func TestASleepingServerIsNotWoken(t *testing.T) {
	pages := llamaPages(t)
	pages["/props"] = strings.Replace(pages["/props"], `"is_sleeping": false`, `"is_sleeping": true`, 1)
	f := newFake(t, pages)
	w := watchIt(t, Options{Address: f.URL})
	until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.State == event.EnginePaused })
	until(w, event.KindReport, 2, func(*event.Report) bool { return true })
	if n := f.times("/slots"); n > 0 {
		t.Errorf("it was asked %d times for its slots, which wakes it", n)
	}
}

func TestARouterIsAskedOnlyForModelsThatAreLoaded(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"a","owned_by":"llamacpp","status":{"value":"unloaded"}},{"id":"b c","owned_by":"llamacpp","status":{"value":%q}}]}`
	f := newFake(t, map[string]string{
		"/v1/models": strings.Replace(list, "%q", `"loaded"`, 1), "/props": `{"role":"router","default_generation_settings":{"n_ctx":0}}`,
		"/slots?model=b+c": sampleOf(t, "llamacpp_slots.json"),
	})
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if len(p.Slots) != 4 {
		t.Errorf("the report is %+v", p)
	}
	until(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "b c" })

	f = newFake(t, map[string]string{"/v1/models": strings.Replace(list, "%q", `"sleeping"`, 1), "/props": `{"role":"router","default_generation_settings":{"n_ctx":0}}`})
	w = watchIt(t, Options{Address: f.URL})
	until(w, event.KindReport, 1, func(*event.Report) bool { return true })
	if f.times("/slots")+f.times("/metrics") > 0 {
		t.Error("a model that is not loaded was asked for, which loads it")
	}
}

// TestSGLangPasses looks for forward passes where the server says that it publishes them.
func TestSGLangPasses(t *testing.T) {
	path := filepath.ToSlash(t.TempDir()) + "/fpm"
	f := newFake(t, map[string]string{
		"/v1/models": models("sglang"), "/v1/loads": sampleOf(t, "sglang_v1_loads.json"),
		"/server_info": `{"version":"0.5.17","forward_pass_metrics_ipc_name":"ipc://` + path + `"}`,
	})
	w := watchIt(t, Options{Address: f.URL})
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		said := ""
		for _, e := range w.log.Of(event.KindLog) {
			said += e.Text + "\n"
		}
		if strings.Contains(said, "following ipc://"+path+".0") && strings.Contains(said, "zmq: ipc://") { // nobody listens there
			return
		}
		if time.Now().After(end) {
			t.Fatalf("said %q", said)
		}
	}
}

func FuzzSlots(f *testing.F) {
	f.Add([]byte(sampleOf(f, "llamacpp_slots.json")), []byte(`[{"id":0,"is_processing":true,"next_token":{"n_decoded":9}}]`))
	f.Add([]byte(`[{"id":-1,"n_ctx":-5,"is_processing":true,"n_prompt_tokens":-9,"next_token":[]}]`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := slots{shared: new(prober.Shared)}
		for i, raw := range [][]byte{a, b, a} {
			var list []slot
			if json.Unmarshal(raw, &list) != nil {
				continue
			}
			p := &event.Report{Interval: int64(i)}
			s.follow(list[:min(len(list), maxSlots)], event.Time(i+1)*1e9, p)
			if p.Generated.V < 0 || p.Decode.V < 0 || p.KVUsage.V < 0 || p.KVUsage.V > 1 {
				t.Errorf("%+v", p)
			}
		}
	})
}
