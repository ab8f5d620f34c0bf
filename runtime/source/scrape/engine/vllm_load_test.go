package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// readingOf returns a named reading of a report.
func readingOf(p *event.Aggregates, name string) (v float64, ok bool) {
	for _, n := range p.More {
		if n.Name == name {
			return n.V, n.OK()
		}
	}
	return 0, false
}

// TestVLLMLoad: /load is added to the metrics once it was above 0.
func TestVLLMLoad(t *testing.T) {
	pages := vllmPages("m", 1)
	pages["/load"] = `{"server_load": 0}`
	f := newFake(t, pages)
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 3, func(*event.Aggregates) bool { return true })
	if why, _ := endpoint(p, "/load"); why != notCounted || f.requestCount("/load") != 1 || len(p.More) > 0 {
		t.Errorf("%q, %d requests: %+v", why, f.requestCount("/load"), p)
	}
	f = newFake(t, maps.Clone(pages))
	f.setPage("/load", `{"server_load": 9}`)
	w = startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
		load, ok := readingOf(p, "server_load")
		why, there := endpoint(p, "/load")
		return ok && load == 9 && there && why == "" && p.Running.V == 3
	})
	f.setPage("/load", `{"server_load": 0}`)
	waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
		load, ok := readingOf(p, "server_load")
		return ok && load == 0
	})
}

// TestVLLMWithoutLoad is polled for its metrics.
func TestVLLMWithoutLoad(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 5, func(*event.Aggregates) bool { return true })
	if why, there := endpoint(p, "/load"); !there || why != "not supported by this server" || f.requestCount("/load") != 1 {
		t.Errorf("%q, %d requests", why, f.requestCount("/load"))
	}
	if why, there := endpoint(p, "/metrics"); !there || why != "" {
		t.Errorf("metrics: %q, %v", why, there)
	}
}

// TestVLLMLoadErrors: /load is polled again later, unless the server has none. Until then the last reason is repeated.
func TestVLLMLoadErrors(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	s, err := New(Options{Address: f.URL, Clock: engine.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int // 0: the connection is closed
		why    string
		final  bool
	}{
		{http.StatusServiceUnavailable, "HTTP 503 Service Unavailable", false},
		{http.StatusTooManyRequests, "HTTP 429 Too Many Requests", false},
		{http.StatusInternalServerError, "HTTP 500 Internal Server Error", false},
		{0, "connection closed without a response", false},
		{http.StatusNotFound, "not supported by this server", true},
		{http.StatusMethodNotAllowed, "not supported by this server", true},
		{http.StatusNotImplemented, "not supported by this server", true},
	} {
		v := new(vllm)
		poll := func() (why string) {
			p := new(event.Aggregates)
			v.addLoad(t.Context(), s, p)
			why, _ = endpoint(p, "/load")
			if load, ok := readingOf(p, "server_load"); ok {
				return fmt.Sprint(load)
			}
			return why
		}
		f.setHandler(func(w http.ResponseWriter, _ *http.Request) {
			if c.status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(c.status)
		})
		first, second := poll(), poll()
		f.setHandler(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"server_load": 2}`) })
		want := "2"
		if c.final {
			want = c.why
		}
		v.loadAt -= idleLoadEvery
		if later := poll(); first != c.why || second != c.why || later != want {
			t.Errorf("status %d: %q, then %q, want %q; later %q, want %q", c.status, first, second, c.why, later, want)
		}
	}
}

// TestSGLangStartupPhases checks the reported startup phases.
func TestSGLangStartupPhases(t *testing.T) {
	f := newFake(t, map[string]string{
		"/v1/models": modelList("sglang"), "/v1/loads?include=core": sampleOf(t, "sglang_v1_loads.json"), "/server_info": sampleOf(t, "sglang_server_info.json"),
		"/metrics": "sglang:num_running_reqs 3\n",
	})
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	got := ""
	for _, n := range p.More {
		got += fmt.Sprintf("%s %v %v|", n.Name, n.V, n.Origin)
	}
	if want := "startup_cuda_graph_decode_s 12.5 reported|startup_kv_cache_allocation_s 0.9 reported|startup_load_weight_s 31.2 reported|" +
		"startup_scheduler_e2e_s 71 reported|startup_tokenizer_e2e_s 74.3 reported|"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if why, there := endpoint(p, "/v1/loads"); !there || why != "" {
		t.Errorf("loads: %q, %v", why, there)
	}
}

// TestStartupWithoutPhases expects a single duration, named like a phase.
func TestStartupWithoutPhases(t *testing.T) {
	out := startupPhases("startup", json.RawMessage("41.5"), maxStartupDepth)
	if len(out) != 1 || out[0].Name != "startup_whole_s" || out[0].Reading != event.ReportedValue(41.5) {
		t.Errorf("%+v", out)
	}
}

func FuzzStartup(f *testing.F) {
	f.Add(`{"load_weight": 31.2, "cuda_graph": {"decode": 12.5, "deeper": {"x": 1}}, "b": -1, "c": "d", "e": null}`)
	f.Add(strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100))
	f.Add("[1e999]")
	f.Add("41.5")
	f.Fuzz(func(t *testing.T, text string) {
		out := startupPhases("startup", json.RawMessage(text), maxStartupDepth)
		if len(out) > maxStartup {
			t.Errorf("%d phases", len(out))
		}
		for _, n := range out {
			if !(n.V >= 0) || len(n.Name) > 12+maxStartupDepth*(maxStageName+1) {
				t.Errorf("%+v", n)
			}
		}
	})
}
