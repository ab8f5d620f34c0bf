package engine

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// nothingReported describes the report of a server that has only a list of models.
const nothingReported = "not reported: running, waiting, decode, prefill, kv, used, total, hits, finished, failed, in, cached, out\n"

// studio responds like LM Studio: with status 200 on every path, and with an error on unknown ones, which LM Studio
// logs.
func studio(f *fake) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		_, known := f.pages[r.URL.Path]
		f.mu.Unlock()
		if known {
			f.servePage(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"error":"Unexpected endpoint or method. (%s %s)"}`, r.Method, r.URL.Path)
	}
}

// TestLMStudio reads the loaded models in both formats. It checks that no later request causes an error in LM Studio's
// log.
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
		f := newFake(t, map[string]string{"/v1/models": modelList("organization_owner"), path: c.list})
		f.setHandler(studio(f))
		w := startPoller(t, Options{Address: f.URL})
		m, n := waitFor(w, event.KindModel, 0, func(*event.Model) bool { return true })
		p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
		var more []string
		for _, n := range p.More {
			more = append(more, fmt.Sprintf("%s %.0f", n.Name, n.V))
		}
		if got := strings.Join(more, ", "); *m != c.want || describe(p) != nothingReported || got != c.more {
			t.Errorf("%s: model %+v, report %s and %s", path, m, got, describe(p))
		}
		if about, _ := w.waitForLink(event.LinkConnected, "", 0); about.Name != "LM Studio" {
			t.Errorf("engine %+v", about)
		}
		others := f.totalRequests() - f.requestCount(path)
		if c.list = strings.Replace(c.list, c.unload, c.load, 1); !strings.Contains(c.list, c.load) {
			t.Fatal("the sample has changed")
		}
		f.setPage(path, c.list)
		_, n = waitFor(w, event.KindModel, n, func(m *event.Model) bool { return m.Name == c.want.Name+" and 1 more" })
		if f.totalRequests()-f.requestCount(path) > others {
			t.Errorf("%s: requests for other paths after identification: %v", path, f.requests)
		}
		// Another server replaces it.
		for at, page := range vllmPages("m", 1) {
			f.setPage(at, page)
		}
		f.setHandler(nil)
		f.setPage(path, "<html>")
		waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.Name == "vLLM" && e.Remote.Link == event.LinkConnected })
		waitFor(w, event.KindModel, n, func(m *event.Model) bool { return m.Name == "m" })
	}
}

// TestListingServers checks servers that report only their models.
func TestListingServers(t *testing.T) {
	const two = `{"object":"list","data":[{"id":"a","object":"model"OWNER},{"id":"b","object":"model"OWNER}]}`
	for name, c := range map[string]struct {
		server, owner string
		pages         map[string]string
		want, then    string // model names
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
		f.setHandler(func(w http.ResponseWriter, r *http.Request) {
			if c.server != "" {
				w.Header().Set("Server", c.server)
			}
			f.servePage(w, r)
		})
		w := startPoller(t, Options{Address: f.URL})
		m, models := waitFor(w, event.KindModel, 0, func(*event.Model) bool { return true })
		p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
		e, n := w.waitForLink(event.LinkConnected, "", 0)
		if m.Name != c.want || describe(p) != nothingReported || len(p.More) > 0 || e.Name != name || e.Version != "" {
			t.Errorf("%s: %+v, model %+v, report %s", name, e, m, describe(p))
		}
		f.setPage("/v1/models", strings.Replace(list, `{"id":"a","object":"model"`+c.owner+`},`, "", 1))
		f.setPage("/running", `{"running":[]}`)
		waitFor(w, event.KindModel, models, func(m *event.Model) bool { return m.Name == c.then })
		f.setHandler(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"no key"}}`)
		})
		w.waitForLink(event.LinkDisconnected, "API key required", n)
	}
}
