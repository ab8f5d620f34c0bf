//go:build unix

package program_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Timing of the server: the first token after crowdTTFT, then crowdSpeed.
const (
	crowdTTFT   = 200 * time.Millisecond
	crowdTokens = 100
	crowdSpeed  = 50 // tokens/s of each stream
)

// crowd answers like a chat server, and reports at the end how long after the request it wrote the first token.
func crowd(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"data":[{"id":"crowd","owned_by":"crowd"}]}`)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	var first time.Duration
	for i := range crowdTokens {
		time.Sleep(time.Until(began.Add(crowdTTFT + time.Duration(i)*time.Second/crowdSpeed)))
		if i == 0 {
			first = time.Since(began)
		}
		_, _ = io.WriteString(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"crowd","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`+"\n\n")
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, `data: {"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":32,"completion_tokens":%d},"metrics":{"time_to_first_token_ms":%v}}`+"\n\ndata: [DONE]\n\n",
		crowdTokens, first.Seconds()*1000)
}

// BenchmarkCrowd measures what llmtop bench adds to TTFT while it reads many streams, in its own process next to the
// server's on the same cores: its median TTFT against that of the server, for the requests while all streams ran.
func BenchmarkCrowd(b *testing.B) {
	path := binary(b)
	server := httptest.NewServer(http.HandlerFunc(crowd))
	defer server.Close()
	stays := crowdTTFT.Seconds() + float64(crowdTokens-1)/crowdSpeed // duration of a request in s
	for _, streams := range []int{1, 100, 500} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			for b.Loop() {
				rate := float64(streams) / stays
				file := filepath.Join(b.TempDir(), "report.json")
				c := exec.Command(path, "bench", server.URL, "-p", "x", "-n", fmt.Sprint(crowdTokens), "--repeats", "1", "--rate", fmt.Sprint(rate),
					"--burstiness", "inf", "--requests", fmt.Sprint(int(math.Ceil(4*stays*rate))), "--json", file)
				if out, err := c.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				crowded(b, file, stays)
			}
		})
	}
}

// crowded evaluates the report of a crowd.
func crowded(b *testing.B, file string, stays float64) {
	b.Helper()
	r := readReport(b, file)
	if r.Totals.Failed.V > 0 {
		b.Fatalf("%v requests failed", r.Totals.Failed.V)
	}
	began := r.Bench.Points[0].Runs[0].Started.V
	var ttft, added []float64
	for _, q := range r.Requests {
		if at := q.Enqueued.V - began; at < stays || at > 4*stays {
			continue
		}
		for _, part := range q.Parts {
			if part.Name == "prompt" {
				ttft, added = append(ttft, part.Time.V), append(added, q.TTFT.V-part.Time.V)
			}
		}
	}
	slices.Sort(ttft)
	slices.Sort(added)
	middle := len(added) / 2
	b.ReportMetric(1000*ttft[middle], "server-ms")
	b.ReportMetric(1000*added[middle], "added-ms")
	b.ReportMetric(100*added[middle]/ttft[middle], "added-%")
	b.ReportMetric(1000*added[len(added)*99/100], "added-p99-ms")
	b.ReportMetric(r.Bench.Client.CPU.V, "client-cores")
	b.ReportMetric(1000*r.Bench.Client.ReadLag.P50.V, "lag-p50-ms")
	for _, why := range r.Bench.Client.Limits {
		b.Logf("a bottleneck: %s", why)
	}
}
