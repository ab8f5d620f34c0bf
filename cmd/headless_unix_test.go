//go:build unix

package cmd_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// localEngines are the flags for each engine that can run here.
func localEngines() map[string][]string {
	engines := map[string][]string{"native": {builtIn}, "isolated": {builtIn, "--isolated"}}
	if os.Getenv("LLMTOP_LLAMA_DIR") != "" {
		engines["llamacpp"] = []string{builtIn, "--engine", "llamacpp"}
	}
	return engines
}

// TestOneColdRequest checks that only the first request of a run includes the model load, so that the others can be
// compared.
func TestOneColdRequest(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range localEngines() {
		for _, command := range [][]string{
			{"run", "--headless"},
			{"bench", "--requests", "3", "--warmup", "0", "--repeats", "1", "--concurrency", "3", "--limits=false"},
		} {
			command = append(append(command, args...), "-p", "a", "-p", "b", "-p", "c", "-n", "4", "--json", "-")
			out, err := exec.Command(path, command...).Output()
			if err != nil {
				t.Fatalf("%s, %v: %v", name, command, err)
			}
			var r report.Report
			if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
				t.Fatal(err)
			}
			for i, q := range r.Requests {
				loaded := q.Parts[0].Name == "model_load"
				if first := i == 0; q.Cold != first || loaded != first {
					t.Errorf("%s, %s: request %d of %d is cold %v, its parts are %v", name, command[0], i, len(r.Requests), q.Cold, q.Parts)
				}
			}
			if warm, cold := r.Percentiles[store.TTFT], r.Percentiles[store.ColdTTFT]; warm == nil || warm.Count != 2 || cold == nil || cold.Count != 1 {
				t.Errorf("%s, %s: TTFT %+v, cold %+v", name, command[0], warm, cold)
			}
		}
	}
}
