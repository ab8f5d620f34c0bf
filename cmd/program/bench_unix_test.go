//go:build unix

package program_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestScreenReportAgrees checks that a benchmark ended early on the screen, the report written from that screen, and
// the replay of its recording give every request the same numbers.
func TestScreenReportAgrees(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir := t.TempDir()
	c := exec.Command(path, "bench", "--ui", "--prompt-tokens", "16", "--concurrency", "2", "-n", "24", "--requests", "8", "--repeats", "1000", "--limits=false",
		"--record", "bench.llmtop", "--json", "live.json")
	c.Dir = dir
	p := startCommand(t, 120, 36, c)
	p.waitFor(t, "TTFT", "ITL")
	if screen := p.text(); strings.Contains(screen, "[.") || strings.Contains(screen, "[#") {
		t.Errorf("the bar is drawn over the screen:\n%s", screen)
	}
	p.keys(t, "2")
	p.waitFor(t, "finished")
	p.keys(t, "S")
	p.waitFor(t, "wrote llmtop-")
	p.keys(t, "q")
	p.exit(t)
	names, err := filepath.Glob(filepath.Join(dir, "llmtop-*.json"))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".perfetto.json") })
	if err != nil || len(names) != 1 {
		t.Fatalf("reports of the screen: %v, %v", names, err)
	}
	again := exec.Command(path, "report", "bench.llmtop", "--json", "replayed.json")
	again.Dir = dir
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen, live, replayed := readReport(t, names[0]), readReport(t, filepath.Join(dir, "live.json")), readReport(t, filepath.Join(dir, "replayed.json"))
	if !live.Partial {
		t.Error("a benchmark that was ended early is not partial")
	}
	for i, q := range live.Requests {
		if !reflect.DeepEqual(q, replayed.Requests[i]) {
			t.Fatalf("request %d:\nlive     %+v\nreplayed %+v", q.ID, q, replayed.Requests[i])
		}
	}
	ended := 0
	for i, q := range seen.Requests {
		if q.State != event.StateFinished.String() {
			continue
		}
		ended++
		a, b := numbers(q), numbers(live.Requests[i])
		if len(a.Layers) == 0 { // the screen keeps those of the last requests, and a fast machine has more by now
			b.Layers = a.Layers
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("request %d:\nscreen %+v\nlive   %+v", q.ID, a, b)
		}
	}
	if ended == 0 {
		t.Error("no request had ended when the screen wrote its report")
	}
}

// TestColdRequestsAreNotOfTheSession checks that the totals of a benchmark agree with its requests, and that the cold
// requests, which are apart, began after them and in order.
func TestColdRequestsAreNotOfTheSession(t *testing.T) {
	t.Parallel()
	path := binary(t)
	out, err := exec.Command(path, "bench", "--cold", "2", "--prompt-tokens", "16", "-n", "4", "--requests", "2", "--repeats", "1", "--limits=false", "--json", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	r := decodeReport(t, out)
	generated := 0
	for _, q := range r.Requests {
		generated += q.Generated
	}
	if r.Totals.Finished.V != float64(len(r.Requests)) || r.Totals.GeneratedTokens.V != float64(generated) || r.Latency(store.ColdTTFT).Count != 1 {
		t.Errorf("%d requests with %d tokens; totals %+v, cold TTFT %+v", len(r.Requests), generated, r.Totals, r.Latency(store.ColdTTFT))
	}
	cold := r.Bench.Points[len(r.Bench.Points)-1]
	if len(r.Bench.Cold) != 2 || len(cold.Runs) != 2 || cold.ColdTTFT == nil || cold.ColdTTFT.Count != 2 {
		t.Fatalf("%d cold requests, cold TTFT %+v of runs %+v", len(r.Bench.Cold), cold.ColdTTFT, cold.Runs)
	}
	last := r.Requests[len(r.Requests)-1].Enqueued.V
	for i, q := range r.Bench.Cold {
		began, run := q.Enqueued.V, cold.Runs[i]
		if !q.Cold || began <= last || began < run.Started.V || began > run.Started.V+run.Duration.V {
			t.Errorf("cold request %d is enqueued at %v, in a run from %v for %v s; the one before at %v", q.ID, began, run.Started, run.Duration, last)
		}
		last = began
	}
}

// numbers returns a request without its tokens, of which the screen keeps only some, and without text. Causes are left
// out: evidence may come up to a second after the screen's report.
func numbers(q report.Request) report.Request {
	q.Tokens, q.TokensCut, q.Text, q.Slow = nil, 0, nil, nil
	q.Stalls = slices.Clone(q.Stalls)
	for i := range q.Stalls {
		q.Stalls[i].Cause = report.Cause{Lost: q.Stalls[i].Lost}
	}
	return q
}

// TestBenchAndReplayAgree checks that the replay of a recorded benchmark gives every request the same numbers, and the
// same totals.
func TestBenchAndReplayAgree(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir := t.TempDir()
	read := func(name string, args ...string) *report.Report {
		t.Helper()
		c := exec.Command(path, append(args, "--json", name)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return readReport(t, filepath.Join(dir, name))
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
	// A second may end between the report and the end of the recording.
	if a, b := live.Experts, replayed.Experts; a != nil && b != nil && max(len(a.Trend), len(b.Trend))-min(len(a.Trend), len(b.Trend)) == 1 {
		n := min(len(a.Trend), len(b.Trend))
		a.Trend, b.Trend = a.Trend[:n], b.Trend[:n]
	}
	if d := cmp.Diff(live.Experts, replayed.Experts); d != "" {
		t.Errorf("router picks, live and replayed: %s", d)
	}
	if !reflect.DeepEqual(live.Latencies, replayed.Latencies) {
		t.Errorf("latencies: live %+v, replayed %+v", live.Latencies, replayed.Latencies)
	}
}

// TestBenchReportsItsOwnStall stops llmtop, not its engine, in the middle of a benchmark: the report blames llmtop.
func TestBenchReportsItsOwnStall(t *testing.T) {
	t.Parallel()
	path := binary(t)
	name := filepath.Join(t.TempDir(), "report.json")
	c := exec.Command(path, "bench", "--isolated", "--prompt-tokens", "16", "-n", "16", "--requests", "20", "--repeats", "1000", "--limits=false", "--json", name)
	notes, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	signal := func(s os.Signal) {
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	runs := 0
	for lines := bufio.NewScanner(notes); lines.Scan(); {
		switch runs++; runs {
		case 2:
			signal(syscall.SIGSTOP)
			time.Sleep(400 * time.Millisecond)
			signal(syscall.SIGCONT)
		case 3:
			signal(os.Interrupt)
		}
	}
	_ = c.Wait() // interrupted
	r := readReport(t, name)
	if lag := r.Bench.Client.ReadLag; lag.Max.V < 0.3 || lag.P99.V > lag.Max.V {
		t.Errorf("after a stop of 400 ms: read lag %+v", lag)
	}
	if limits := strings.Join(r.Bench.Client.Limits, "; "); !strings.Contains(limits, "it stood still for up to ") {
		t.Errorf("bottlenecks: %s", limits)
	}
}

// readReport reads a report.
func readReport(tb testing.TB, name string) *report.Report {
	tb.Helper()
	r, err := playback.ReadReport(tb.Context(), name, nil, io.Discard)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
