package discover

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// found searches the real machine until the engine at an address is ready. It ignores other engines.
func found(t *testing.T, address string, ready func(*Found) bool) Found {
	t.Helper()
	var last Result
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		last = Find(context.Background(), Options{NoSockets: true, Ports: []uint16{}, Within: 5 * time.Second})
		for _, f := range last.Engines {
			if f.Address == address && ready(&f) {
				return f
			}
		}
	}
	t.Fatalf("nothing at %s is as it should be: %+v", address, last)
	return Found{}
}

// TestRealLlamaServer: the process, its port, and its identity.
func TestRealLlamaServer(t *testing.T) {
	p := peer.LlamaServer(t, "")
	f := found(t, p.URL, func(f *Found) bool { return f.State == Ready })
	if f.Kind != engine.Llama || f.PID == 0 || f.How != ByProcess || f.Version == "" || f.Model == "" || !f.Load.Running.OK() || f.Load.Running.V != 0 {
		t.Errorf("%+v", f)
	}
}

// TestRealLockedLlamaServer: a server with an API key.
func TestRealLockedLlamaServer(t *testing.T) {
	key := t.TempDir() + "/key"
	if err := os.WriteFile(key, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := peer.LlamaServer(t, "", "--api-key-file", key)
	f := found(t, p.URL, func(f *Found) bool { return f.State == NeedsKey })
	if f.Kind != engine.Llama || f.Load.Running.OK() {
		t.Errorf("%+v", f)
	}
}

// TestRealOllama: the llama-server that it starts for a model is not listed separately.
func TestRealOllama(t *testing.T) {
	p := peer.Ollama(t)
	f := found(t, p.URL, func(f *Found) bool { return f.State == Ready })
	if f.Kind != engine.Ollama || f.Version == "" || f.PID == 0 {
		t.Errorf("%+v", f)
	}
	body := `{"model":"` + peer.OllamaModel + `","prompt":"Once upon a time","stream":false,"options":{"num_predict":4}}`
	answer, err := http.Post(p.URL+"/api/generate", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	f = found(t, p.URL, func(f *Found) bool { return len(f.Runners) == 1 && f.Model != "" })
	if f.Model != peer.OllamaModel || !strings.HasPrefix(f.Runners[0].Address, "http://127.0.0.1:") {
		t.Errorf("%+v", f)
	}
	for _, other := range Find(context.Background(), Options{NoSockets: true, Ports: []uint16{}, Within: 5 * time.Second}).Engines {
		if other.Address == f.Runners[0].Address || other.PID == f.Runners[0].PID {
			t.Errorf("its child is listed by itself: %+v", other)
		}
	}
}
