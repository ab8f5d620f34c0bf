// Package peer starts real inference servers and receivers of metrics for tests: llama.cpp's llama-server, Ollama,
// Prometheus, and an OpenTelemetry Collector. Environment variables hold their paths.
//
//	eval "$(scripts/peers.sh)"
//
// installs the programs and sets the variables. A test that needs an absent program is skipped with that reason. A
// server listens on a free port of 127.0.0.1 and stops with the test that started it. Ways are those in which servers
// misbehave. Only tests import this package.
package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native"
)

// Environment variables with the paths of the programs.
const (
	LlamaServerEnv = "LLMTOP_PEER_LLAMA_SERVER"
	LlamaBenchEnv  = "LLMTOP_PEER_LLAMA_BENCH"
	LlamaSharedEnv = "LLMTOP_PEER_LLAMA_SHARED" // llama-server on shared libraries
	OllamaEnv      = "LLMTOP_PEER_OLLAMA"
	PrometheusEnv  = "LLMTOP_PEER_PROMETHEUS"
	CollectorEnv   = "LLMTOP_PEER_COLLECTOR"
)

// Path returns the program that an environment variable names. It skips the test if the variable is not set.
func Path(tb testing.TB, env string) string {
	tb.Helper()
	path := os.Getenv(env)
	if path == "" {
		tb.Skipf(`%s is not set: eval "$(scripts/peers.sh)" installs the real servers and sets it`, env)
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("%s names a program that is not there: %v", env, err)
	}
	return path
}

// Model returns a file with the built-in model, which is removed after the test.
func Model(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), native.DemoName)
	if err := os.WriteFile(path, native.DemoModel(), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// LlamaServer starts llama.cpp's server with a model, or the built-in one if model is empty. args adds flags such as
// --metrics, --parallel 4 or --api-key-file.
func LlamaServer(tb testing.TB, model string, args ...string) *Process {
	tb.Helper()
	path := Path(tb, LlamaServerEnv)
	if model == "" {
		model = Model(tb)
	}
	return start(tb, server{name: "llama-server", ready: "/health", command: func(port int) *exec.Cmd {
		return exec.Command(path, append([]string{"--model", model, "--host", "127.0.0.1", "--port", strconv.Itoa(port)}, args...)...)
	}})
}

// LlamaRouter starts llama.cpp's server with several models, each the built-in one under another name. A model is
// loaded only by a request to /models/load.
func LlamaRouter(tb testing.TB, models ...string) *Process {
	tb.Helper()
	path, folder := Path(tb, LlamaServerEnv), tb.TempDir()
	for _, name := range models {
		if err := os.WriteFile(filepath.Join(folder, name+".gguf"), native.DemoModel(), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return start(tb, server{name: "llama-server", ready: "/health", command: func(port int) *exec.Cmd {
		return exec.Command(path, "--models-dir", folder, "--no-models-autoload", "--host", "127.0.0.1", "--port", strconv.Itoa(port))
	}})
}

// Prometheus starts Prometheus with a configuration, such as Scrape's. Its data is removed after the test.
func Prometheus(tb testing.TB, config string) *Process {
	tb.Helper()
	path, folder := Path(tb, PrometheusEnv), tb.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	return start(tb, server{name: "prometheus", ready: "/-/ready", command: func(port int) *exec.Cmd {
		return exec.Command(path, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
			"--web.listen-address=127.0.0.1:"+strconv.Itoa(port))
	}})
}

// Scrape returns a Prometheus configuration that scrapes targets (HOST:PORT) at /metrics every second, as the job
// "llmtop".
func Scrape(targets ...string) string {
	quoted := make([]string, len(targets))
	for i, t := range targets {
		quoted[i] = strconv.Quote(t)
	}
	return "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: llmtop, static_configs: [{targets: [" + strings.Join(quoted, ", ") + "]}]}]\n"
}

// Collector starts an OpenTelemetry Collector that receives metrics and traces by OTLP over HTTP. Its Log has a line for
// each point and span.
func Collector(tb testing.TB) *Process {
	tb.Helper()
	path, file := Path(tb, CollectorEnv), filepath.Join(tb.TempDir(), "collector.yaml")
	return start(tb, server{name: "collector", ready: "/v1/traces", command: func(port int) *exec.Cmd {
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
	}})
}
