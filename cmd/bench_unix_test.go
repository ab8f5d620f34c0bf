//go:build unix

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/llmtop/llmtop/profiler/report"
)

// TestBenchAndReplayAgree: a benchmark, and the replay of its recording, give every request the same numbers, and the same totals.
func TestBenchAndReplayAgree(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	read := func(name string, args ...string) *report.Report {
		t.Helper()
		c := exec.Command(path, append(args, "--json", name)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r, err := report.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	live := read("live.json", "bench", "--prompt-tokens", "16,64", "--concurrency", "1,3", "-n", "12", "--requests", "4", "--repeats", "2", "--limits=false", "--record", "bench.llmtop")
	replayed := read("replayed.json", "replay", "bench.llmtop", "--headless")
	if len(live.Requests) != len(replayed.Requests) || len(live.Requests) < 32 {
		t.Fatalf("%d requests live, %d replayed", len(live.Requests), len(replayed.Requests))
	}
	for i := range live.Requests {
		if a, b := live.Requests[i], replayed.Requests[i]; !reflect.DeepEqual(a, b) {
			t.Fatalf("request %d:\nlive     %+v\nreplayed %+v", a.ID, a, b)
		}
	}
	if live.Totals.GeneratedTokens != replayed.Totals.GeneratedTokens || live.Totals.PromptTokens != replayed.Totals.PromptTokens || live.Totals.Steps != replayed.Totals.Steps {
		t.Errorf("totals: live %+v, replayed %+v", live.Totals, replayed.Totals)
	}
	if !reflect.DeepEqual(live.Experts, replayed.Experts) {
		t.Error("router picks differ")
	}
	if !reflect.DeepEqual(live.Percentiles, replayed.Percentiles) {
		t.Errorf("percentiles: live %+v, replayed %+v", live.Percentiles, replayed.Percentiles)
	}
}
