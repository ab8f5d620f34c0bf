package engine

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// pages maps paths to responses; one that starts with three digits and a space has that status.
type pages map[string]string

// serve serves pages and records the requested paths.
func serve(t testing.TB, server string, p pages) (at string, requested func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		list = append(list, r.Method+" "+r.URL.Path)
		mu.Unlock()
		page, ok := p[r.URL.Path]
		if server != "" {
			w.Header().Set("Server", server)
		}
		switch {
		case !ok:
			http.NotFound(w, r)
			return
		case strings.HasPrefix(page, "401 "):
			w.WriteHeader(http.StatusUnauthorized)
			page = page[4:]
		case strings.HasPrefix(page, "{"), strings.HasPrefix(page, "["):
			w.Header().Set("Content-Type", "application/json")
		case strings.HasPrefix(page, "<"):
			w.Header().Set("Content-Type", "text/html")
		default:
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), list...)
	}
}

// identifyAt identifies the server at an address.
func identifyAt(t testing.TB, at string) (Kind, Info, error) {
	t.Helper()
	c, err := fetch.New(at, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	info, err := Identify(context.Background(), c)
	return info.Kind, info, err
}

const noKey = `401 {"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`

func ownedList(owner string) string {
	return `{"object":"list","data":[{"id":"m","object":"model","owned_by":"` + owner + `","max_model_len":4096}]}`
}

var servers = []struct {
	name, server string
	pages        pages
	kind         Kind
	version      string
	model        string
	metrics      string
	key          bool
}{
	{"llama.cpp", "llama.cpp", pages{
		"/v1/models": `{"object":"list","data":[{"id":"tiny","owned_by":"llamacpp","meta":{"n_params":7,"n_ctx_train":9}}]}`,
		"/props": `{"default_generation_settings":{"n_ctx":8192},"total_slots":4,"model_ftype":"Q4_K","build_info":"b10582-e85caa81e",
			"endpoint_slots":true,"endpoint_metrics":true}`,
	}, Llama, "b10582-e85caa81e", "tiny", "/metrics", false},
	{"llama.cpp without --metrics", "", pages{
		"/v1/models": ownedList("llamacpp"), "/props": `{"default_generation_settings":{"n_ctx":5},"endpoint_slots":true,"build_info":"b1"}`,
	}, Llama, "b1", "m", "", false},
	{"llama.cpp with a key", "llama.cpp", pages{"/v1/models": noKey, "/props": noKey, "/health": `{"status":"ok"}`}, Llama, "", "", "", true},
	{"Ollama", "", pages{
		"/v1/models": ownedList("library"), "/api/version": `{"version":"0.33.0"}`,
		"/api/ps": `{"models":[{"name":"qwen3:30b","size":10,"size_vram":5,"details":{"parameter_size":"30.5B"},"context_length":8192}]}`,
	}, Ollama, "0.33.0", "qwen3:30b", "", false},
	{"Ollama without models", "", pages{"/v1/models": `{"object":"list","data":null}`, "/api/version": `{"version":"0.33.0"}`}, Ollama, "0.33.0", "", "", false},
	{"vLLM", "uvicorn", pages{"/v1/models": ownedList("vllm"), "/version": `{"version":"0.11.2"}`}, VLLM, "0.11.2", "m", "/metrics", false},
	{"vLLM with a key", "uvicorn", pages{
		"/v1/models": `401 {"error":"Unauthorized"}`, "/version": `{"version":"0.11.2"}`,
		"/metrics": "# TYPE python_info gauge\npython_info 1\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n",
	}, VLLM, "0.11.2", "", "/metrics", true},
	{"SGLang", "uvicorn", pages{
		"/v1/models": ownedList("sglang"), "/server_info": `{"model_path":"q","tp_size":1,"version":"0.5.17","enable_metrics":true}`,
	}, SGLang, "0.5.17", "m", "/metrics", false},
	{"SGLang of before, without metrics", "uvicorn", pages{
		"/v1/models": ownedList("acme"), "/get_server_info": `{"model_path":"q","tp_size":1,"version":"0.4.1","enable_metrics":false}`,
	}, SGLang, "0.4.1", "m", "", false},
	{"TGI", "", pages{"/info": `{"model_id":"q/w","version":"3.3.7","router":"text-generation-router","max_total_tokens":2048}`}, TGI, "3.3.7", "q/w", "/metrics", false},
	{"TensorRT-LLM", "uvicorn", pages{"/v1/models": ownedList("tensorrt_llm"), "/version": `{"version":"1.2.0"}`}, TensorRT, "1.2.0", "m", "/prometheus/metrics", false},
	{"TensorRT-LLM that does not name itself", "uvicorn", pages{
		"/v1/models": ownedList("acme"), "/version": `{"version":"1.2.0"}`, "/metrics": `[]`,
		"/prometheus/metrics": "# HELP trtllm_num_requests_running Number\n# TYPE trtllm_num_requests_running gauge\n",
	}, TensorRT, "1.2.0", "m", "/prometheus/metrics", false},
	{"LMDeploy", "uvicorn", pages{"/v1/models": ownedList("lmdeploy")}, LMDeploy, "", "m", "/metrics", false},
	{"LM Studio", "", pages{
		"/v1/models": ownedList("organization_owner"), "/api/v0/models": `{"data":[]}`,
		"/api/v1/models": `{"models":[{"type":"llm","key":"granite","quantization":{"name":"Q4_K_M","bits_per_weight":4},"params_string":"7B","loaded_instances":[]}]}`,
	}, LMStudio, "", "granite", "", false},
	{"LM Studio without models", "", pages{
		"/v1/models": `{"object":"list","data":[]}`, "/api/v1/models": `{"models":[]}`,
		"/api/v0/models": `{"error":"Unexpected endpoint or method. (GET /api/v0/models)"}`, "/api/version": `{"error":"Unexpected endpoint or method. (GET /api/version)"}`,
	}, LMStudio, "", "", "", false},
	{"LM Studio until 0.4", "", pages{
		"/v1/models": ownedList("organization_owner"), "/api/v1/models": `{"error":"Unexpected endpoint or method. (GET /api/v1/models)"}`,
		"/api/v0/models": `{"data":[{"id":"granite","state":"loaded","arch":"granite","quantization":"Q4","compatibility_type":"gguf","max_context_length":99}]}`,
	}, LMStudio, "", "granite", "", false},
	{"LM Studio with a key", "", pages{"/v1/models": noKey, "/api/v1/models": noKey, "/api/v0/models": noKey}, Unknown, "", "", "", true},
	{"same owner as LM Studio", "", pages{"/v1/models": ownedList("organization_owner")}, OpenAI, "", "m", "", false},
	{"llama-swap", "", pages{"/v1/models": ownedList("llama-swap"), "/running": `{"running":[]}`}, LlamaSwap, "", "m", "", false},
	{"mlx-lm", "BaseHTTP/0.6 Python/3.13.1", pages{"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":1}]}`}, MLX, "", "m", "", false},
	{"Triton", "", pages{"/v2": `{"name":"triton","version":"2.60.0","extensions":[]}`}, Triton, "2.60.0", "", "/metrics", false},
	{"metrics of Triton alone", "", pages{"/metrics": "nv_inference_request_success{model=\"m\"} 1\n"}, Triton, "", "", "/metrics", false},
	{"something with the API of OpenAI", "", pages{"/v1/models": ownedList("acme")}, OpenAI, "", "m", "", false},
}

func TestIdentify(t *testing.T) {
	for _, s := range servers {
		at, requested := serve(t, s.server, s.pages)
		kind, info, err := identifyAt(t, at)
		if (err == nil) == (s.kind == Unknown) || kind != s.kind || info.Version != s.version || info.MetricsPath != s.metrics || info.NeedsKey != s.key {
			t.Errorf("%s: %q, %+v, %v", s.name, kind, info, err)
		}
		if model := ""; s.model != "" {
			if len(info.Models) > 0 {
				model = info.Models[0].Name
			}
			if model != s.model {
				t.Errorf("%s: model %q, want %q", s.name, model, s.model)
			}
		}
		for _, what := range requested() {
			if !strings.HasPrefix(what, "GET ") || strings.Contains(what, "generate") || strings.Contains(what, "completions") {
				t.Errorf("%s: requested %q", s.name, what)
			}
			if what == "GET /metrics" && s.kind == TensorRT {
				t.Errorf("%s: requested %q, which returns each iteration only once", s.name, what)
			}
		}
	}
}

func TestRouterModels(t *testing.T) {
	at, requested := serve(t, "llama.cpp", pages{
		"/v1/models": `{"object":"list","data":[{"id":"a","owned_by":"llamacpp","status":{"value":"unloaded"}},{"id":"b","owned_by":"llamacpp","status":{"value":"loaded"}}]}`,
		"/props":     `{"role":"router","default_generation_settings":{"params":null,"n_ctx":0},"build_info":"b1"}`,
	})
	kind, info, err := identifyAt(t, at)
	if err != nil || kind != Llama || !info.Router || len(info.Models) != 2 || info.Models[0].Loaded || !info.Models[1].Loaded {
		t.Errorf("%q, %+v, %v", kind, info, err)
	}
	if n := len(requested()); n != 2 {
		t.Errorf("requested %q", requested())
	}
}

// TestStudioModelFormats expects the same model from both formats.
func TestStudioModelFormats(t *testing.T) {
	both := studioModel{Key: "granite", ID: "ibm/granite", Architecture: "granite", Arch: "granite"}
	before := studioModel{ID: "granite", Arch: "granite"}
	for _, m := range []studioModel{both, before} {
		if list := m.models(); len(list) != 1 || list[0].Name != "granite" || list[0].Architecture != "granite" {
			t.Errorf("%+v gives %+v", m, list)
		}
	}
}

func TestNoEngine(t *testing.T) {
	for name, p := range map[string]pages{
		"nothing":      {},
		"a web site":   {"/": "<html>", "/v1/models": "<html>", "/info": "<html>", "/metrics": "<html>", "/api/version": "<html>"},
		"another API":  {"/v1/models": `{"models":7}`, "/info": `{"name":"x"}`, "/metrics": "go_goroutines 3\n"},
		"broken lists": {"/v1/models": `{"object":"list","data":[`, "/v2": `[]`},
	} {
		at, _ := serve(t, "", p)
		if kind, info, err := identifyAt(t, at); kind != Unknown || !errors.Is(err, ErrNoEngine) || info.NeedsKey {
			t.Errorf("%s: %q, %+v, %v", name, kind, info, err)
		}
	}
}

func TestMissingKey(t *testing.T) {
	at, _ := serve(t, "", pages{"/v1/models": noKey, "/metrics": noKey, "/props": noKey, "/info": noKey})
	kind, info, err := identifyAt(t, at)
	refused := (*fetch.StatusError)(nil)
	if kind != Unknown || !info.NeedsKey || !errors.As(err, &refused) || !fetch.NeedsKey(err) || err.Error() != "API key required" {
		t.Errorf("%q, %+v, %v", kind, info, err)
	}
}

// TestFailingServerIsRequestedOnce: a failing server is not tried with one endpoint after the other, each of which may
// take long.
func TestFailingServerIsRequestedOnce(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"HTTP 503: no GPU": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":{"message":"no GPU"}}`))
		},
		"response truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"object":"list",`))
		},
	} {
		requested := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requested++
			answer(w, r)
		}))
		if kind, _, err := identifyAt(t, s.URL); err == nil || err.Error() != want || kind != Unknown {
			t.Errorf("kind %q: %v, want %s", kind, err, want)
		}
		s.Close() // waits for open requests
		if requested != 1 {
			t.Errorf("%s: %d requests", want, requested)
		}
	}
}

func FuzzIdentify(f *testing.F) {
	for _, s := range servers {
		for path, page := range s.pages {
			f.Add(path, s.server, page)
		}
	}
	f.Fuzz(func(t *testing.T, path, server, page string) {
		if len(page) > 1<<16 || strings.ContainsAny(server, "\r\n\x00") {
			t.Skip("too long for a quick try, or no header")
		}
		at, _ := serve(t, server, pages{path: page, "/v1/models": page})
		if kind, info, err := identifyAt(t, at); (kind == Unknown) == (err == nil) || len(info.Models) > maxModels {
			t.Errorf("%q, %+v, %v", kind, info, err)
		}
	})
}
