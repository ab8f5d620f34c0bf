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
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	return Start(tb, "llama-server", "/health", func(port int) *exec.Cmd {
		return exec.Command(path, append([]string{"--model", model, "--host", "127.0.0.1", "--port", strconv.Itoa(port)}, args...)...)
	})
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
	return Start(tb, "llama-server", "/health", func(port int) *exec.Cmd {
		return exec.Command(path, "--models-dir", folder, "--no-models-autoload", "--host", "127.0.0.1", "--port", strconv.Itoa(port))
	})
}
