package exposition

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestCollectorReceives pushes everything to a real OpenTelemetry Collector and checks that it takes all of it: each
// metric by its name, and a span for each request.
func TestCollectorReceives(t *testing.T) {
	collector := startCollector(t)
	x := New("1.0")
	p, err := x.Push(collector.URL, "", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	engine := addEngine(x, "http://gpu1:8000")
	engine.emitEverything()
	engine.request(9, event.Request{Chat: true, Model: "qwen"}, 4)
	addEngine(x, "server").emitAggregates()
	p.Close()
	if n := x.failures.Load(); n != 0 {
		t.Fatalf("%d pushes failed", n)
	}
	collector.Stop() // it has written everything when it has ended
	log := collector.Log()
	for _, i := range instruments {
		if !strings.Contains(log, "\n"+i.name+"{") && !strings.Contains(log, "\n"+i.name+" ") {
			t.Errorf("the collector did not receive %s", i.name)
		}
	}
	for _, want := range []string{"\nchat qwen ", "gen_ai.usage.output_tokens=4", "server.address=gpu1"} {
		if !strings.Contains(log, want) {
			t.Errorf("the collector received no span with %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%.4000s", log)
	}
}

// startCollector starts an OpenTelemetry Collector that receives metrics and traces by OTLP over HTTP. Its Log has a line for
// each point and span.
func startCollector(tb testing.TB) *peer.Process {
	tb.Helper()
	path, file := peer.Path(tb, peer.CollectorEnv), filepath.Join(tb.TempDir(), "collector.yaml")
	return peer.Start(tb, "collector", "/v1/traces", func(port int) *exec.Cmd {
		config := fmt.Sprintf(`receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters: {debug: {verbosity: normal, use_internal_logger: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], exporters: [debug]}
    traces: {receivers: [otlp], exporters: [debug]}
`, port)
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			tb.Fatal(err)
		}
		return exec.Command(path, "--config=file:"+file)
	})
}
