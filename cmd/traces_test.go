package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestTracesBecomeAReport receives traces like those of vLLM, and reads the report and the recording.
func TestTracesBecomeAReport(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "runtime", "source", "otlp", "testdata", "vllm_otlp_request.json"))
	if err != nil {
		t.Fatal(err)
	}
	file, recorded := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "traces.llmtop")
	notes, w := io.Pipe()
	root := command(t, "attach", "--otlp", "127.0.0.1:0", "--headless", "--json", file, "--record", recorded)
	root.SetErr(w)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx); w.Close() }()
	line, err := bufio.NewReader(notes).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, notes) }()
	at, found := strings.CutPrefix(strings.TrimSpace(line), "listening: ")
	if err != nil || !found {
		stop()
		t.Fatalf("%q, %v, %v", line, err, <-ended)
	}
	res, err := http.Post(at, "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	stop()
	if err := <-ended; err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %s", err, res.Status)
	}
	var report struct {
		Requests []struct {
			TTFT  float64            `json:"ttft_s"`
			TPOT  float64            `json:"tpot_s"`
			Parts map[string]float64 `json:"ttft_components_s"`
			Group string             `json:"group"`
		} `json:"requests"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &report); err != nil || len(report.Requests) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	if r := report.Requests[0]; r.TTFT != 0.2124 || r.Group != "vllm" || r.Parts["queue"] != 0.0031 || r.Parts["prompt"] != 0.205 || math.Abs(r.TPOT-2.99/179) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(recorded); err != nil || info.Size() == 0 {
		t.Errorf("no recording: %v", err)
	}
}

func TestTracesNeedAnAddress(t *testing.T) {
	for _, args := range [][]string{
		{"attach", "--headless"},
		{"attach", "--otlp", "nowhere", "--headless"},
		{"attach", "--otlp", "0.0.0.0:0", "--headless"},
	} {
		t.Setenv("LLMTOP_TOKEN", "")
		if _, _, err := llmtop(t, args...); exit.Code(err) != exit.CodeUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
