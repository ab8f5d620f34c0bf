package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/peer"
)

// exporter is an engine's metrics that a test turns up: every answer counts on.
type exporter struct {
	mu   sync.Mutex
	text string // of a sample
	n    int    // answers so far
	down bool
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}
	e.n++
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for line := range strings.Lines(e.text) {
		if i := strings.LastIndex(line, "} "); strings.Contains(line, "generation_tokens_total{") || strings.Contains(line, `mode="decode"`) {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[i+2:]), 64)
			if err != nil {
				panic(err)
			}
			line = fmt.Sprintf("%s} %v\n", line[:i], v+float64(100*e.n))
		}
		_, _ = w.Write([]byte(line))
	}
}

func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../gather/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A real Prometheus that scrapes engines, one of which goes down: every replica has its kind, its model and its numbers, as a scrape of it has them.
func TestRealPrometheus(t *testing.T) {
	vllm, sglang, dead := &exporter{text: sample(t, "vllm.txt")}, &exporter{text: sample(t, "sglang.txt")}, &exporter{down: true}
	var targets []string
	for _, e := range []*exporter{vllm, sglang, dead} {
		server := httptest.NewServer(e)
		t.Cleanup(server.Close)
		targets = append(targets, strings.TrimPrefix(server.URL, "http://"))
	}
	prometheus := peer.Prometheus(t, peer.Scrape(targets...))
	f := watch(t, Options{Address: prometheus.URL, Match: `job="llmtop"`})

	for i, want := range []struct {
		engine, model string
		running       float64
	}{{"vLLM", "Qwen/Qwen3-30B-A3B", 7}, {"SGLang", "Qwen/Qwen3-30B-A3B", 6}} {
		r := f.replica(targets[i])
		r.until(event.KindEngine, func(p any) bool {
			e := p.(*event.Engine)
			return e.Name == want.engine && e.Remote.Link == event.LinkConnected
		})
		r.until(event.KindModel, func(p any) bool { return p.(*event.Model).Name == want.model })
		r.until(event.KindReport, func(p any) bool {
			told := p.(*event.Report)
			return told.Running.OK() && told.Running.V == want.running && told.Generated.OK() && told.Generated.V >= 100 && told.Decode.OK() && told.Interval > 0
		})
	}
	f.replica(targets[2]).until(event.KindEngine, func(p any) bool {
		e := p.(*event.Engine)
		return e.Remote.Link == event.LinkDisconnected && strings.Contains(e.Remote.Why, "cannot scrape")
	})

	vllm.mu.Lock()
	vllm.down = true
	vllm.mu.Unlock()
	f.replica(targets[0]).until(event.KindEngine, func(p any) bool { return p.(*event.Engine).Remote.Link == event.LinkDisconnected })
	vllm.mu.Lock()
	vllm.down, vllm.n = false, -3 // its counters are lower than before: it was started anew
	vllm.mu.Unlock()
	f.replica(targets[0]).untilAfter(event.KindEngine, event.LinkDisconnected, event.LinkConnected)
}
