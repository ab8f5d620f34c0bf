package scrape

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// nothing is what a server tells of which only the models are known.
const nothing = "not reported: running, waiting, decode, prefill, kv, used, total, hits, finished, failed, in, cached, out\n"

// studio answers as LM Studio does: 200 at every path, with an error at those that it does not know, of which each is an error in its log.
func studio(f *fake) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		_, known := f.pages[r.URL.Path]
		f.mu.Unlock()
		if known {
			f.page(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"error":"Unexpected endpoint or method. (%s %s)"}`, r.Method, r.URL.Path)
	}
}

// TestLMStudio reads which models are in memory, in both forms of its list, and asks again for nothing that would stand in its log as an error.
func TestLMStudio(t *testing.T) {
	for path, c := range map[string]struct {
		list, load, unload string
		want               event.Model
		more               string
	}{
		"/api/v1/models": {
			sampleOf(t, "lmstudio_v1_models.json"),
			`"params_string": "30B", "loaded_instances": [{"id": "qwen", "config": {"context_length": 8192}}]`, `"params_string": "30B", "loaded_instances": []`,
			event.Model{
				Name: "ibm/granite-4-micro", Architecture: "granite", Quantisation: "Q4_K_M", Bytes: 2098959000, Parameters: 3e9, Context: 4096, TrainContext: 131072,
			},
			"model_file_bytes 2098959000, models_in_memory 1",
		},
		"/api/v0/models": {
			sampleOf(t, "lmstudio_v0_models.json"), `"quantization": "4bit", "state": "loaded"`, `"quantization": "4bit", "state": "not-loaded"`,
			event.Model{Name: "granite-4.0-micro", Architecture: "granite", Quantisation: "Q4_K_M", Context: 4096, TrainContext: 131072},
			"models_in_memory 1",
		},
	} {
		f := newFake(t, map[string]string{"/v1/models": models("organization_owner"), path: c.list})
		f.answer(studio(f))
		w := watchIt(t, Options{Address: f.URL})
		m, n := until(w, event.KindModel, 0, func(*event.Model) bool { return true })
		p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
		var more []string
		for _, n := range p.More {
			more = append(more, fmt.Sprintf("%s %.0f", n.Name, n.V))
		}
		if got := strings.Join(more, ", "); *m != c.want || rows(p) != nothing || got != c.more {
			t.Errorf("%s: the model is %+v, the report says %s and %s", path, m, got, rows(p))
		}
		if about, _ := w.linked(event.LinkConnected, "", 0); about.Name != "LM Studio" {
			t.Errorf("it is %+v", about)
		}
		others := f.all() - f.times(path)
		if c.list = strings.Replace(c.list, c.unload, c.load, 1); !strings.Contains(c.list, c.load) {
			t.Fatal("the sample is another one")
		}
		f.set(path, c.list)
		_, n = until(w, event.KindModel, n, func(m *event.Model) bool { return m.Name == c.want.Name+" and 1 more" })
		if f.all()-f.times(path) > others {
			t.Errorf("%s: once it was known it was asked for something else: %v", path, f.asked)
		}
		// Somebody else takes its place.
		for at, page := range vllmPages("m", 1) {
			f.set(at, page)
		}
		f.answer(nil)
		f.set(path, "<html>")
		until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.Name == "vLLM" && e.Remote.Link == event.LinkConnected })
		until(w, event.KindModel, n, func(m *event.Model) bool { return m.Name == "m" })
	}
}

// TestServersThatOnlyListTheirModels are there, or not, with their models, and nothing else is told of them.
func TestServersThatOnlyListTheirModels(t *testing.T) {
	const two = `{"object":"list","data":[{"id":"a","object":"model"OWNER},{"id":"b","object":"model"OWNER}]}`
	for name, c := range map[string]struct {
		server, owner string
		pages         map[string]string
		want, then    string // of the models
	}{
		"mlx-lm":            {"BaseHTTP/0.6 Python/3.13.1", "", map[string]string{"/health": `{"status":"ok"}`}, "a and 1 more", "b"},
		"OpenAI-compatible": {"", `,"owned_by":"acme"`, nil, "a and 1 more", "b"},
		"llama-swap":        {"", `,"owned_by":"llama-swap"`, map[string]string{"/running": `{"running":[{"model":"b","state":"ready"},{"model":"a","state":"starting"}]}`}, "b", ""},
	} {
		list := strings.ReplaceAll(two, "OWNER", c.owner)
		pages := map[string]string{"/v1/models": list}
		for at, page := range c.pages {
			pages[at] = page
		}
		f := newFake(t, pages)
		f.answer(func(w http.ResponseWriter, r *http.Request) {
			if c.server != "" {
				w.Header().Set("Server", c.server)
			}
			f.page(w, r)
		})
		w := watchIt(t, Options{Address: f.URL})
		m, models := until(w, event.KindModel, 0, func(*event.Model) bool { return true })
		p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
		e, n := w.linked(event.LinkConnected, "", 0)
		if m.Name != c.want || rows(p) != nothing || len(p.More) > 0 || e.Name != name || e.Version != "" {
			t.Errorf("%s: %+v, the model is %+v, the report says %s", name, e, m, rows(p))
		}
		f.set("/v1/models", strings.Replace(list, `{"id":"a","object":"model"`+c.owner+`},`, "", 1))
		f.set("/running", `{"running":[]}`)
		until(w, event.KindModel, models, func(m *event.Model) bool { return m.Name == c.then })
		f.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"no key"}}`)
		})
		w.linked(event.LinkDisconnected, "needs a key", n)
	}
}
