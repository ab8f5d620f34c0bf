//go:build unix

package peer

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get requests JSON from a server.
func get(t *testing.T, url string, into any) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %s: %v", url, resp.Status, err)
	}
}

// ask posts JSON and returns the answer's JSON.
func ask(t *testing.T, url, body string, into any) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v", url, resp.Status, err)
	}
}

// TestLlamaServer starts the server, generates, and stops it.
func TestLlamaServer(t *testing.T) {
	p := LlamaServer(t, "", "--metrics")
	var answer struct {
		Content string
		Timings struct {
			N int `json:"predicted_n"`
		}
	}
	ask(t, p.URL+"/completion", `{"prompt": "Once upon a time", "n_predict": 8}`, &answer)
	if answer.Timings.N != 8 || answer.Content == "" {
		t.Errorf("wanted 8 tokens: %+v", answer)
	}
	p.Stop()
	if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("after it was stopped, its process gives %v", err)
	}
	if !strings.Contains(p.Log(), "llama") {
		t.Errorf("its log is %q", p.Log())
	}
}

// TestOllama loads the built-in model in Ollama and generates.
func TestOllama(t *testing.T) {
	p := Ollama(t)
	var answer struct {
		Response string
		Count    int `json:"eval_count"`
	}
	ask(t, p.URL+"/api/generate", `{"model": "`+OllamaModel+`", "prompt": "Once upon a time", "stream": false, "options": {"num_predict": 8}}`, &answer)
	if answer.Count == 0 || answer.Response == "" {
		t.Errorf("answer %+v", answer)
	}
	var loaded struct{ Models []struct{ Name string } }
	get(t, p.URL+"/api/ps", &loaded)
	if len(loaded.Models) != 1 || loaded.Models[0].Name != OllamaModel {
		t.Errorf("loaded is %+v", loaded)
	}
}

// TestTap: a tap keeps what passes, message by message.
func TestTap(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, piece := range []string{"data: {\"a\"", ":1}\n\n", "data: [DONE]\n\n"} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	defer server.Close()
	tap := new(Tap)
	client := http.Client{Transport: tap.Over(http.DefaultTransport)}
	began := time.Now()
	resp, err := client.Post(server.URL+"/v1/x?q", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := tap.Of("/v1/x"); len(got) != 0 {
		t.Errorf("an answer has ended before its end: %v", got)
	}
	close(next)
	text, err := io.ReadAll(resp.Body)
	if want := "data: {\"a\":1}\n\ndata: [DONE]\n\n"; err != nil || string(text) != want {
		t.Errorf("through the tap comes %q, %v", text, err)
	}
	answers := tap.Of("/v1/x")
	if len(answers) != 1 || len(answers[0].Messages()) != 2 {
		t.Fatalf("it has %v", answers)
	}
	a, b := answers[0].Messages()[0], answers[0].Messages()[1]
	if a.Text != `{"a":1}` || b.Text != "[DONE]" || answers[0].Began.Before(began) || a.At.Before(answers[0].Began) || b.At.Before(a.At) {
		t.Errorf("it has %+v and %+v", a, b)
	}
}

// TestAbsent reports which of the real programs are absent; eval "$(scripts/peers.sh)" installs them.
func TestAbsent(t *testing.T) {
	var absent []string
	for _, p := range []struct{ name, env string }{
		{"llama.cpp's libraries", "LLMTOP_LLAMA_DIR"},
		{"llama-server", LlamaServerEnv},
		{"llama-bench", LlamaBenchEnv},
		{"llama-server on shared libraries", LlamaSharedEnv},
		{"Ollama", OllamaEnv},
		{"Prometheus", PrometheusEnv},
		{"the OpenTelemetry Collector", CollectorEnv},
		{"the openai client", "LLMTOP_OPENAI_CLIENT"},
	} {
		if at := os.Getenv(p.env); at != "" {
			t.Logf("%s: %s", p.name, at)
		} else {
			absent = append(absent, p.name+" ("+p.env+")")
		}
	}
	if len(absent) > 0 {
		t.Skipf(`absent, their tests were skipped: %s. eval "$(scripts/peers.sh)" installs them`, strings.Join(absent, ", "))
	}
}
