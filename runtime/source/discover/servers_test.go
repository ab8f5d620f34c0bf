package discover

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers are a server's answers by path; other paths get a 404.
type answers map[string]string

// fake is an engine's HTTP server that records its requests.
type fake struct {
	*httptest.Server
	mu      sync.Mutex // guards the fields below
	answers answers
	asked   []string
}

// set changes the answer at a path.
func (f *fake) set(path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[path] = text
}

// serve starts a fake; status is the status of all its answers.
func serve(tb testing.TB, status int, texts answers) *fake {
	tb.Helper()
	f := &fake{answers: texts}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
		text, ok := f.answers[r.URL.Path]
		f.mu.Unlock()
		switch {
		case !ok && status == http.StatusOK:
			http.NotFound(w, r)
			return
		case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
			w.Header().Set("Content-Type", "application/json")
		case strings.HasPrefix(text, "#"):
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	tb.Cleanup(f.Close)
	return f
}

// at returns its address.
func (f *fake) at() netip.AddrPort { return netip.MustParseAddrPort(f.Listener.Addr().String()) }

// harmless fails if the server got a request that costs it more than a read.
func (f *fake) harmless(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, asked := range f.asked {
		if !strings.HasPrefix(asked, "GET ") {
			t.Errorf("an engine got the request %s", asked)
		}
		for _, dear := range []string{"completion", "generate", "/api/chat", "embed", "messages", "responses", "profile", "sleep", "load_model"} {
			if strings.Contains(asked, dear) {
				t.Errorf("an engine got the request %s", asked)
			}
		}
	}
}

// sample returns a file of testdata.
func sample(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Answers of the engines.

func llamaAnswers(tb testing.TB) answers {
	return answers{
		"/v1/models": `{"object":"list","data":[{"id":"qwen3-30b-a3b","object":"model","owned_by":"llamacpp","meta":{"n_ctx":8192}}]}`,
		"/props":     sample(tb, "llamacpp_props.json"), "/slots": sample(tb, "llamacpp_slots.json"),
	}
}

func ollamaAnswers(tb testing.TB) answers {
	return answers{
		"/v1/models":   `{"object":"list","data":[{"id":"qwen3:30b-a3b","object":"model","owned_by":"library"}]}`,
		"/api/version": `{"version":"0.33.0"}`, "/api/ps": sample(tb, "ollama_ps.json"),
	}
}

func vllmAnswers(testing.TB) answers {
	return answers{
		"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-30B-A3B","object":"model","owned_by":"vllm","max_model_len":40960}]}`,
		"/version":   `{"version":"0.22.0"}`,
	}
}

func sglangAnswers(tb testing.TB) answers {
	return answers{
		"/v1/models":   `{"object":"list","data":[{"id":"Qwen/Qwen3-30B-A3B","object":"model","owned_by":"sglang","max_model_len":40960}]}`,
		"/server_info": sample(tb, "sglang_server_info.json"), "/v1/loads": sample(tb, "sglang_v1_loads.json"),
	}
}
