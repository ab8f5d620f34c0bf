package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/store"
)

// counting answers like vLLM, each time with ten more requests with a TTFT of slow times 200 ms.
type counting struct {
	*httptest.Server
	looks atomic.Int64
}

func newCounting(t *testing.T, slow int64) *counting {
	t.Helper()
	c := new(counting)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"org/fake","object":"model","owned_by":"vllm"}]}`)
		case "/version":
			_, _ = io.WriteString(w, `{"version":"0.11.2"}`)
		case "/metrics":
			n := 10 * c.looks.Add(1)
			fmt.Fprint(w, "vllm:num_requests_running 3\nvllm:generation_tokens_total ", n, "\n")
			under := func(bound int64) int64 {
				if 200*slow <= bound {
					return n
				}
				return 0
			}
			const ttft = "vllm:time_to_first_token_seconds"
			fmt.Fprintf(w, "%[1]s_bucket{le=\"0.1\"} %[2]d\n%[1]s_bucket{le=\"0.25\"} %[3]d\n%[1]s_bucket{le=\"1\"} %[4]d\n%[1]s_bucket{le=\"+Inf\"} %[5]d\n%[1]s_sum %[6]g\n%[1]s_count %[5]d\n",
				ttft, under(100), under(250), under(1000), n, float64(n*slow)*0.2)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// headless runs attach without a screen until every server was polled several times.
func headless(t *testing.T, servers []*counting, args ...string) {
	t.Helper()
	all := append([]string{"attach", "--headless", "--interval", "100ms"}, args...)
	for _, s := range servers {
		all = append(all, s.URL)
	}
	root := command(t, all...)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	for _, s := range servers {
		for s.looks.Load() < 9 && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// again runs a command that reads a file, and returns its output.
func again(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := llmtop(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// TestServerReportWithoutScreen checks that the report has the reported values with their origin, and no 0 for missing
// ones, and that the report of the recording is the same.
func TestServerReportWithoutScreen(t *testing.T) {
	dir := t.TempDir()
	recorded, live, replayed := filepath.Join(dir, "s.llmtop"), filepath.Join(dir, "live.json"), filepath.Join(dir, "replayed.json")
	headless(t, []*counting{newCounting(t, 1)}, "--record", recorded, "--json", live)
	r := readReport(t, live)
	if r.Engine.Name != "vLLM" || r.Engine.Connection == nil || r.Engine.Connection.State != "connected" || r.Partial || r.Fleet != nil {
		t.Errorf("engine %+v, connection %+v, partial %v", r.Engine, r.Engine.Connection, r.Partial)
	}
	if n := r.Totals.GeneratedTokens; n.V < 40 || r.Totals.Origin["generated_tokens"] != "derived" {
		t.Errorf("%v tokens, %q", n.V, r.Totals.Origin["generated_tokens"])
	}
	if r.Totals.PromptTokens.OK() || r.Totals.Finished.OK() || r.Totals.Absent["finished"] != "not reported" {
		t.Errorf("missing values are in the totals: %+v", r.Totals)
	}
	if h := r.Latency(store.TTFT); h == nil || h.Origin != "reported" || !h.P50.OK() || h.Mean.V != 0.2 {
		t.Errorf("TTFT is %+v", h)
	}
	again(t, "replay", "--config", os.DevNull, "--headless", "--json", replayed, recorded)
	if diff := compared(t, live, replayed); diff != "" {
		t.Errorf("live and replayed differ:\n%s", diff)
	}
	text := again(t, "report", recorded)
	if !strings.Contains(text, "not reported: finished, cancelled, failed") || !strings.Contains(text, "ttft") {
		t.Errorf("the report of the recording:\n%s", text)
	}
}

// compared returns the differences of two reports, without their source and the times when their clocks stopped.
func compared(t *testing.T, one, other string) string {
	t.Helper()
	read := func(name string) (doc map[string]any) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	elsewhere := cmpopts.IgnoreMapEntries(func(name string, _ any) bool { return name == "configuration" || name == "machine" })
	return cmp.Diff(read(one), read(other), elsewhere, cmpopts.EquateApprox(0.01, 0.01))
}

// TestSeveralServersReport checks that each server has an entry, with medians over all and the outliers by name.
func TestSeveralServersReport(t *testing.T) {
	dir := t.TempDir()
	name, rows := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv")
	servers := []*counting{newCounting(t, 1), newCounting(t, 1), newCounting(t, 1), newCounting(t, 4)}
	headless(t, servers, "--json", name, "--csv", rows)
	r := readReport(t, name)
	f := r.Fleet
	if f == nil || len(f.Replicas) != 4 || f.Connected != 4 || r.Engine.Name != "vLLM" || r.Model == nil || r.Model.Name != "org/fake" {
		t.Fatalf("the report is of %+v", f)
	}
	sum := 0.0
	for i, one := range f.Replicas {
		if !slices.ContainsFunc(servers, func(s *counting) bool { return s.URL == one.Name }) || len(one.Report.Reported.Numbers) == 0 || one.State != "ready" {
			t.Errorf("replica %d is %+v", i, one)
		}
		sum += one.Report.Totals.GeneratedTokens.V
	}
	if r.Totals.GeneratedTokens.V != sum || r.Totals.Finished.OK() {
		t.Errorf("the totals are %+v, the replicas have %v tokens", r.Totals, sum)
	}
	if len(f.Outliers) == 0 || f.Outliers[0].Replica != servers[3].URL || f.Outliers[0].Name != "ttft_mean_s" || !(f.Outliers[0].Times.V > 2) {
		t.Errorf("outliers %+v", f.Outliers)
	}
	text := again(t, "report", name)
	for _, want := range []string{"4 engines (vLLM), 4 connected", servers[3].URL, "OUTLIERS", "times the median", "median"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	table, err := os.ReadFile(rows)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(table), "\n"+servers[3].URL+",running,3,within,reported\n") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestHeadlessNeedsAnAddress(t *testing.T) {
	for _, args := range [][]string{
		{"attach", "--headless", "--for", "1s"},
		{"attach", "--headless", "--for", "-1s", "http://127.0.0.1:1"},
		{"attach", "--headless", "ftp://127.0.0.1:1"},
	} {
		if _, _, err := llmtop(t, args...); exit.Code(err) != exit.CodeUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestFor checks that --for ends the program.
func TestFor(t *testing.T) {
	text, err := timed(t, newCounting(t, 1).URL)
	if late := err != nil && strings.Contains(err.Error(), "never reached: no response yet"); !strings.Contains(text, "requests ") || err != nil && !late {
		t.Errorf("%v, and the report is\n%s", err, text)
	}
}

// timed watches servers for a moment, and returns the report and the error.
func timed(t *testing.T, servers ...string) (string, error) {
	t.Helper()
	out, _, err := llmtop(t, append([]string{"attach", "--headless", "--for", "300ms"}, servers...)...)
	return out, err
}

// TestUnreachedServers checks that servers that were never reached are an error of one line, and that the report has no
// zeros for them.
func TestUnreachedServers(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	text, err := timed(t, silent.URL)
	if want := "attach " + silent.URL + ": never reached: no response yet"; err == nil || err.Error() != want || exit.Code(err) != 1 {
		t.Errorf("it ends with %v, exit code %d", err, exit.Code(err))
	}
	if !strings.Contains(text, "requests not yet: finished") || strings.Contains(text, "finished 0") {
		t.Errorf("the report is\n%s", text)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := timed(t, gone.URL, silent.URL); err == nil || !strings.Contains(err.Error(), gone.URL+": never reached: ") || !strings.HasSuffix(err.Error(), " (nor 1 more)") {
		t.Errorf("two of them end with %v", err)
	}
}
