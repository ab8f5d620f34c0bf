package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// exporter serves an engine's metrics. Its counters rise with each response.
type exporter struct {
	mu   sync.Mutex
	text string // sample metrics
	n    int    // responses so far
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

// A real Prometheus scrapes two engines and one that is down. Each replica has its kind, model and readings, as a
// direct poll would have.
func TestRealPrometheus(t *testing.T) {
	vllm, sglang, dead := &exporter{text: sample(t, "vllm.txt")}, &exporter{text: sample(t, "sglang.txt")}, &exporter{down: true}
	var targets []string
	for _, e := range []*exporter{vllm, sglang, dead} {
		server := httptest.NewServer(e)
		t.Cleanup(server.Close)
		targets = append(targets, strings.TrimPrefix(server.URL, "http://"))
	}
	prometheus := startPrometheus(t, scrapes(targets...))
	f := startPoller(t, Options{Address: prometheus.URL, Match: `job="llmtop"`})

	for i, want := range []struct {
		engine, model string
		running       float64
	}{{"vLLM", "Qwen/Qwen3-30B-A3B", 7}, {"SGLang", "Qwen/Qwen3-30B-A3B", 6}} {
		r := f.waitForReplica(targets[i])
		r.waitFor(event.KindEngine, func(p any) bool {
			e := p.(*event.EngineInfo)
			return e.Name == want.engine && e.Remote.Link == event.LinkConnected
		})
		r.waitFor(event.KindModel, func(p any) bool { return p.(*event.Model).Name == want.model })
		r.waitFor(event.KindAggregates, func(p any) bool {
			a := p.(*event.Aggregates)
			return a.Running.OK() && a.Running.V == want.running && a.Generated.OK() && a.Generated.V >= 100 && a.Decode.OK() && a.Interval > 0
		})
	}
	f.waitForReplica(targets[2]).waitFor(event.KindEngine, func(p any) bool {
		e := p.(*event.EngineInfo)
		return e.Remote.Link == event.LinkDisconnected && strings.Contains(e.Remote.Reason, "cannot scrape")
	})

	vllm.mu.Lock()
	vllm.down = true
	vllm.mu.Unlock()
	f.waitForReplica(targets[0]).waitFor(event.KindEngine, func(p any) bool { return p.(*event.EngineInfo).Remote.Link == event.LinkDisconnected })
	vllm.mu.Lock()
	vllm.down, vllm.n = false, -3 // the counters are lower than before, as after a restart
	vllm.mu.Unlock()
	f.waitForReplica(targets[0]).waitForLinkAfter(event.KindEngine, event.LinkDisconnected, event.LinkConnected)
}

// startPrometheus starts Prometheus with a configuration, such as that of scrapes. Its data is removed after the test.
func startPrometheus(tb testing.TB, config string) *peer.Process {
	tb.Helper()
	path, folder := peer.Path(tb, peer.PrometheusEnv), tb.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	return peer.Start(tb, "prometheus", "/-/ready", func(port int) *exec.Cmd {
		return exec.Command(path, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
			"--web.listen-address=127.0.0.1:"+strconv.Itoa(port))
	})
}

// scrapes returns a Prometheus configuration that scrapes targets (HOST:PORT) at /metrics every second, as the job
// "llmtop".
func scrapes(targets ...string) string {
	quoted := make([]string, len(targets))
	for i, t := range targets {
		quoted[i] = strconv.Quote(t)
	}
	return "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: llmtop, static_configs: [{targets: [" + strings.Join(quoted, ", ") + "]}]}]\n"
}
