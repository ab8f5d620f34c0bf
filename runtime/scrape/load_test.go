package scrape

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// number is a number of a report by its name.
func number(p *event.Report, name string) (v float64, ok bool) {
	for _, n := range p.More {
		if n.Name == name {
			return n.V, n.OK()
		}
	}
	return 0, false
}

// TestLoadOfVLLM: the requests of its HTTP server stand beside what its metrics tell, once it has counted any.
func TestLoadOfVLLM(t *testing.T) {
	pages := vllmPages("m", 1)
	pages["/load"] = `{"server_load": 0}`
	f := newFake(t, pages)
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 3, func(*event.Report) bool { return true })
	if why, _ := source(p, "/load"); why != notCounted || f.times("/load") != 1 || len(p.More) > 0 {
		t.Errorf("%q, asked %d times: %+v", why, f.times("/load"), p)
	}
	f = newFake(t, maps.Clone(pages))
	f.set("/load", `{"server_load": 9}`)
	w = watchIt(t, Options{Address: f.URL})
	_, n := until(w, event.KindReport, 0, func(p *event.Report) bool {
		load, ok := number(p, "server_load")
		why, there := source(p, "/load")
		return ok && load == 9 && there && why == "" && p.Running.V == 3
	})
	f.set("/load", `{"server_load": 0}`)
	until(w, event.KindReport, n, func(p *event.Report) bool {
		load, ok := number(p, "server_load")
		return ok && load == 0
	})
}

// TestAVLLMWithoutLoad is watched by its metrics.
func TestAVLLMWithoutLoad(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 5, func(*event.Report) bool { return true })
	if why, there := source(p, "/load"); !there || why != "the server has none" || f.times("/load") != 1 {
		t.Errorf("%q, asked %d times", why, f.times("/load"))
	}
	if why, there := source(p, "/metrics"); !there || why != "" {
		t.Errorf("metrics: %q, %v", why, there)
	}
}

// TestAVLLMThatRefusesItsLoad is asked for it again, later, unless it says that it has none. Until then the last reason is repeated.
func TestAVLLMThatRefusesItsLoad(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	s, err := New(Options{Address: f.URL, Clock: runtime.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int // 0: the connection is broken off
		why    string
		final  bool
	}{
		{http.StatusServiceUnavailable, "the server answers 503 Service Unavailable", false},
		{http.StatusTooManyRequests, "the server answers 429 Too Many Requests", false},
		{http.StatusInternalServerError, "the server answers 500 Internal Server Error", false},
		{0, "the server closed the connection without an answer", false},
		{http.StatusNotFound, "the server has none", true},
		{http.StatusMethodNotAllowed, "the server has none", true},
		{http.StatusNotImplemented, "the server has none", true},
	} {
		v := new(vllm)
		look := func() (why string) {
			p := new(event.Report)
			v.load(t.Context(), s, p)
			why, _ = source(p, "/load")
			if load, ok := number(p, "server_load"); ok {
				return fmt.Sprint(load)
			}
			return why
		}
		f.answer(func(w http.ResponseWriter, _ *http.Request) {
			if c.status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(c.status)
		})
		first, second := look(), look()
		f.answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"server_load": 2}`) })
		want := "2"
		if c.final {
			want = c.why
		}
		v.asked -= idleLoadEvery
		if later := look(); first != c.why || second != c.why || later != want {
			t.Errorf("after %d it is %q, then %q, want %q; later %q, want %q", c.status, first, second, c.why, later, want)
		}
	}
}

// TestStartOfSGLang: the phases of its start are told as it tells them.
func TestStartOfSGLang(t *testing.T) {
	f := newFake(t, map[string]string{
		"/v1/models": models("sglang"), "/v1/loads?include=core": sampleOf(t, "sglang_v1_loads.json"), "/server_info": sampleOf(t, "sglang_server_info.json"),
		"/metrics": "sglang:num_running_reqs 3\n",
	})
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	got := ""
	for _, n := range p.More {
		got += fmt.Sprintf("%s %v %v|", n.Name, n.V, n.Origin)
	}
	if want := "startup_cuda_graph_decode_s 12.5 reported|startup_kv_cache_allocation_s 0.9 reported|startup_load_weight_s 31.2 reported|" +
		"startup_scheduler_e2e_s 71 reported|startup_tokenizer_e2e_s 74.3 reported|"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if why, there := source(p, "/v1/loads"); !there || why != "" {
		t.Errorf("loads: %q, %v", why, there)
	}
}

// TestWholeStart: of a start without phases there is one time, which has a name as phases have.
func TestWholeStart(t *testing.T) {
	out := startup("startup", json.RawMessage("41.5"), maxStartupDepth)
	if len(out) != 1 || out[0].Name != "startup_whole_s" || out[0].Reading != event.Told(41.5) {
		t.Errorf("%+v", out)
	}
}

func FuzzStartup(f *testing.F) {
	f.Add(`{"load_weight": 31.2, "cuda_graph": {"decode": 12.5, "deeper": {"x": 1}}, "b": -1, "c": "d", "e": null}`)
	f.Add(strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100))
	f.Add("[1e999]")
	f.Add("41.5")
	f.Fuzz(func(t *testing.T, text string) {
		out := startup("startup", json.RawMessage(text), maxStartupDepth)
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
