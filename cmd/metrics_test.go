package cmd

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/cmd/exit"
)

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// scraped returns the metrics at an address by name and labels, once they contain want.
func scraped(t *testing.T, at, token, want string) map[string]float64 {
	t.Helper()
	request, err := http.NewRequest("GET", "http://"+at+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			continue
		}
		out := make(map[string]float64)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), " ")
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				out[name] = v
			}
		}
		_ = answer.Body.Close()
		if out[want] > 0 {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not among %d series, answer %s", want, len(out), answer.Status)
		}
	}
}

// TestPushedTotals checks that the final push equals the report of the same run.
func TestPushedTotals(t *testing.T) {
	var mu sync.Mutex
	var last []byte
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		zip, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		message, err := io.ReadAll(zip)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/v1/metrics" {
			last = message
		}
	}))
	defer receiver.Close()
	file := filepath.Join(t.TempDir(), "report.json")
	run := command(t, "run", "--headless", "-n", "20", "-p", "Call me Ishmael.", "-p", "In the beginning", "--json", file, "--otlp-push", receiver.URL)
	if err := run.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Requests []struct{ Cold bool }
		Totals   struct {
			Finished, Steps uint64
			Prompt          uint64 `json:"prompt_tokens"`
			Generated       uint64 `json:"generated_tokens"`
		}
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	cold := uint64(0)
	for _, r := range report.Requests {
		if r.Cold {
			cold++
		}
	}
	if report.Totals.Finished != 2 || report.Totals.Generated < 4 || cold == 0 {
		t.Fatalf("the report has %+v, %d of them cold", report.Totals, cold)
	}
	got := totals(t, last)
	for name, want := range map[string]uint64{
		"llmtop.requests": report.Totals.Finished, "llmtop.forward_passes": report.Totals.Steps, "llmtop.prompt_tokens": report.Totals.Prompt,
		"llmtop.generated_tokens": report.Totals.Generated, "gen_ai.server.request.duration": report.Totals.Finished,
		"llmtop.inter_token_latency":          report.Totals.Generated - report.Totals.Finished,
		"gen_ai.server.time_to_first_token":   report.Totals.Finished - cold,
		"llmtop.cold_time_to_first_token":     cold,
		"gen_ai.server.time_per_output_token": report.Totals.Finished,
	} {
		if got[name] != want {
			t.Errorf("%s is pushed as %d, the report has %d", name, got[name], want)
		}
	}
}

// totals returns the sums of counters and the counts of histograms in an OTLP message, over all their points.
func totals(t *testing.T, message []byte) map[string]uint64 {
	t.Helper()
	type points struct {
		DataPoints []struct {
			AsInt, Count string
		}
	}
	var data struct {
		ResourceMetrics []struct {
			ScopeMetrics []struct {
				Metrics []struct {
					Name           string
					Sum, Histogram points
				}
			}
		}
	}
	if err := json.Unmarshal(message, &data); err != nil {
		t.Fatalf("%v\n%s", err, message)
	}
	out := make(map[string]uint64)
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		for _, p := range append(m.Sum.DataPoints, m.Histogram.DataPoints...) {
			n, _ := strconv.ParseUint(p.AsInt+p.Count, 10, 64) // one of them, or neither
			out[m.Name] += n
		}
	}
	return out
}

// TestEndpoint serves an engine, attaches to it without a screen, and fetches metrics from both.
func TestEndpoint(t *testing.T) {
	t.Setenv("LLMTOP_TOKEN", "")
	dir := t.TempDir()
	secret := filepath.Join(dir, "token")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	engineAt, serveAt, attachAt := freeAddress(t), freeAddress(t), freeAddress(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 2)
	for _, args := range [][]string{
		{"serve", "--listen", "tcp:" + engineAt, "--metrics-listen", serveAt},
		{"attach", "tcp:" + engineAt, "--metrics-listen", attachAt, "--token-file", secret},
	} {
		c := command(t, args...)
		go func() { ended <- c.ExecuteContext(ctx) }()
	}
	const model = "llmtop_model_parameters"
	label := `{engine="tcp:` + engineAt + `"}`
	if own := scraped(t, serveAt, "", `llmtop_process_threads{engine="local",process="engine"}`); own[`llmtop_engine_up{engine="local"}`] != 1 {
		t.Errorf("the engine is not up: %v", own)
	}
	own, far := scraped(t, serveAt, "", model+`{engine="local"}`), scraped(t, attachAt, "s3cret", model+label)
	if far[model+label] != own[model+`{engine="local"}`] || far["llmtop_engine_up"+label] != 1 {
		t.Errorf("%s is %v there and %v here", model, far[model+label], own[model+`{engine="local"}`])
	}
	answer, err := http.Get("http://" + attachAt + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", answer.Status)
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if _, err := net.Dial("tcp", serveAt); err == nil {
		t.Error("the endpoint outlives its command")
	}
}

// TestExportErrors checks that unusable flags give one line before anything is loaded.
func TestExportErrors(t *testing.T) {
	t.Setenv("LLMTOP_TOKEN", "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ flag, value, want string }{
		{"--metrics-listen", "nowhere", `--metrics-listen "nowhere": must be HOST:PORT`},
		{"--metrics-listen", "127.0.0.1:port", "must be HOST:PORT"},
		{"--metrics-listen", "0.0.0.0:0", "other machines can reach this address: add --token-file FILE"},
		{"--metrics-listen", "[::]:0", "add --token-file FILE"},
		{"--metrics-listen", taken.Addr().String(), "--metrics-listen: listen tcp"},
		{"--otlp-push", "127.0.0.1:4318", "--otlp-push: parse receiver address"},
		{"--otlp-push", "grpc://127.0.0.1:4317", "write http://HOST:PORT or https://HOST:PORT"},
	} {
		for _, name := range []string{"run", "serve", "bench"} {
			run := command(t, name, c.flag, c.value)
			err := run.ExecuteContext(context.Background())
			if err == nil || exit.Code(err) != exit.CodeUsage || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s %s: %v", name, c.flag, c.value, err)
			}
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "no header")
	run := command(t, "run", "--otlp-push", "http://127.0.0.1:1", "-p", "x")
	if err := run.ExecuteContext(context.Background()); err == nil || exit.Code(err) != exit.CodeUsage {
		t.Errorf("invalid headers: %v", err)
	}
}

// TestWorkflow checks the commands and flags of the workflow in docs/github-actions.md.
func TestWorkflow(t *testing.T) {
	page, err := os.ReadFile("../docs/github-actions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	script := strings.ReplaceAll(block, "\\\n", " ")
	script = regexp.MustCompile(`"\$\([^)]*\)"`).ReplaceAllString(script, "FILES") // a single word
	found := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^ *llmtop ([^|]*?)(?:\|\|.*)?$`).FindAllStringSubmatch(script, -1) {
		c, rest, err := NewRoot().Find(strings.Fields(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		found[c.Name()]++
		if err := c.ParseFlags(rest); err != nil {
			t.Errorf("llmtop %s: %v", m[1], err)
			continue
		}
		if err := c.ValidateArgs(c.Flags().Args()); err != nil {
			t.Errorf("llmtop %s: %v", m[1], err)
		}
	}
	if found["bench"] != 2 || found["compare"] != 1 {
		t.Errorf("the workflow has the commands %v", found)
	}
	for code, words := range map[int]string{exit.CodeOK: "no worse", exit.CodeFailed: "worse", exit.CodeUsage: "inconclusive", exit.CodeNotCompared: "not compare"} {
		if !regexp.MustCompile(fmt.Sprintf(`\b%d\b[^.]*%s|%s[^.]*\b%d\b`, code, strings.ReplaceAll(words, " ", `\s+`), words, code)).Match(page) {
			t.Errorf("docs/github-actions.md does not say that %d is %q", code, words)
		}
	}
}
