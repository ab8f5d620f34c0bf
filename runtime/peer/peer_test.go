//go:build unix

package peer

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get asks a server for a piece of JSON.
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

// ask sends JSON and gives back the answer's.
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

// TestLlamaServer starts the server, has it generate, and stops it.
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
		t.Errorf("of 8 tokens it says %+v", answer)
	}
	p.Stop()
	if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("after it was stopped, its process gives %v", err)
	}
	if !strings.Contains(p.Log(), "llama") {
		t.Errorf("its log is %q", p.Log())
	}
}

// TestOllama has Ollama load the built-in model and generate.
func TestOllama(t *testing.T) {
	p := Ollama(t)
	var answer struct {
		Response string
		Count    int `json:"eval_count"`
	}
	ask(t, p.URL+"/api/generate", `{"model": "`+OllamaModel+`", "prompt": "Once upon a time", "stream": false, "options": {"num_predict": 8}}`, &answer)
	if answer.Count == 0 || answer.Response == "" {
		t.Errorf("it says %+v", answer)
	}
	var loaded struct{ Models []struct{ Name string } }
	get(t, p.URL+"/api/ps", &loaded)
	if len(loaded.Models) != 1 || loaded.Models[0].Name != OllamaModel {
		t.Errorf("loaded is %+v", loaded)
	}
}

// TestPrometheus has Prometheus scrape a llama-server.
func TestPrometheus(t *testing.T) {
	Path(t, PrometheusEnv)
	llama := LlamaServer(t, "", "--metrics")
	p := Prometheus(t, Scrape(strings.TrimPrefix(llama.URL, "http://")))
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
		var answer struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		get(t, p.URL+"/api/v1/query?query=llamacpp:n_decode_total", &answer)
		if len(answer.Data.Result) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never had the metric: %s", p.Log())
		}
	}
}
