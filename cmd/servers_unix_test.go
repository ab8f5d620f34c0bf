//go:build unix

package cmd

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/source/peer"
)

// spoken holds the timings in the last message of an answer of llama-server.
type spoken struct {
	prompt, generated int
	fill, decode      float64 // ms: until the first token, and from the first to the last
}

func spokenIn(t *testing.T, a *peer.Answer) (s spoken) {
	t.Helper()
	for _, m := range a.Messages() {
		var in struct {
			Timings *struct {
				CacheN      int     `json:"cache_n"`
				PromptN     int     `json:"prompt_n"`
				PromptMS    float64 `json:"prompt_ms"`
				PredictedN  int     `json:"predicted_n"`
				PredictedMS float64 `json:"predicted_ms"`
			}
		}
		if json.Unmarshal([]byte(m.Text), &in) == nil && in.Timings != nil {
			s = spoken{in.Timings.CacheN + in.Timings.PromptN, in.Timings.PredictedN, in.Timings.PromptMS, in.Timings.PredictedMS}
		}
	}
	if s.generated == 0 {
		t.Fatalf("a llama-server's answer without timings: %v", a.Messages())
	}
	return s
}

// counter returns one of the metrics of a llama-server.
func counter(t *testing.T, url, name string) int {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, is := strings.CutPrefix(lines.Text(), name+" "); is {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// startTap starts a tap in front of a server and returns its address.
func startTap(t *testing.T, to string) (tap *peer.Tap, at string) {
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true} // no request uses a connection that is being closed
	tap = new(peer.Tap)
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // at once
		Transport:     tap.Over(transport),
		ErrorLog:      log.New(io.Discard, "", 0), // clients that disconnect early are part of tests
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // an answer may start before the request was read
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return tap, server.URL
}

// TestBenchLlamaServer benchmarks a real llama-server. Token counts equal those of its metrics and answers; no time is
// shorter than the server, and a third party between both, saw; and where the machine was not busy, it is hardly longer.
func TestBenchLlamaServer(t *testing.T) {
	server := peer.LlamaServer(t, "", "--metrics", "--parallel", "1", "--ctx-size", "1024", "--threads", "1")
	const prompts, outputs = "llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"
	tap, between := startTap(t, server.URL)
	was := [2]int{counter(t, server.URL, prompts), counter(t, server.URL, outputs)}
	r, _ := bencher(t, between, "--prompt-tokens", "48", "-n", "96", "--requests", "9", "--repeats", "1", "--warmup", "1")
	answers := tap.Of("/v1/completions")
	if len(r.Requests) != 10 || len(answers) != 10 || r.Bench.Failed != 0 {
		t.Fatalf("%d requests, %d answers, %d failed", len(r.Requests), len(answers), r.Bench.Failed)
	}
	var sums [2]int
	closest := served{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	for i, a := range answers {
		reported, got := spokenIn(t, a), &r.Requests[i]
		if int(got.Prompt.V) != reported.prompt || got.Generated != reported.generated || got.Generated != 96 || got.Prompt.V != 48 {
			t.Errorf("request %d: %d and %d tokens, the server says %+v", i, int(got.Prompt.V), got.Generated, reported)
		}
		theirs := servedIn(a)
		if got.TTFT.V < max(theirs.ttft, reported.fill/1e3) || got.E2EL.V < max(theirs.e2el, (reported.fill+reported.decode)/1e3) {
			t.Errorf("request %d: TTFT %v s, E2EL %v s are shorter than the server took: %+v, seen in between %+v", i, got.TTFT, got.E2EL, reported, theirs)
		}
		sums[0], sums[1] = sums[0]+int(got.Prompt.V), sums[1]+got.Generated
		decode := reported.decode / 1e3 / float64(reported.generated-1)
		closest.ttft, closest.e2el = min(closest.ttft, apart(got.TTFT.V, theirs.ttft)), min(closest.e2el, apart(got.E2EL.V, theirs.e2el))
		closest.tpot = min(closest.tpot, max(apart(got.TPOT.V, theirs.tpot), apart(got.TPOT.V, decode)))
		closest.itl = min(closest.itl, apart(got.ITL.P50.V, theirs.itl))
	}
	for end := time.Now().Add(20 * time.Second); counter(t, server.URL, outputs)-was[1] < sums[1] && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // until the last slot is released
	}
	if now := [2]int{counter(t, server.URL, prompts) - was[0], counter(t, server.URL, outputs) - was[1]}; now != sums {
		t.Errorf("prompts and outputs have %v tokens, by the server's metrics %v", sums, now)
	}
	point := &r.Bench.Points[0]
	if mean := (point.E2EL.Mean.V - point.TTFT.Mean.V) / 95; apart(mean, point.TPOT.Mean.V) > 0.05 { // a first message of several tokens leaves fewer after it
		t.Errorf("mean TPOT is %v, of E2EL and TTFT %v", point.TPOT.Mean.V, mean)
	}
	if n := point.Tokens; n.Generated != 9*96 || n.Prompt != 9*48 || n.Requests != 9 {
		t.Errorf("it counts %+v", n)
	}
	t.Logf("the request nearest to what was seen in between is apart by %+v", closest)
	if closest.ttft > 0.25 || max(closest.tpot, closest.itl, closest.e2el) > 0.1 {
		t.Errorf("no request is near what was seen in between: %+v", closest)
	}
}

// apart returns the difference of two values as a fraction of the second.
func apart(a, b float64) float64 { return math.Abs(a/b - 1) }

// served holds times of a completion as a third party between client and server sees them, in s; itl is the median.
type served struct{ ttft, tpot, itl, e2el float64 }

// servedIn computes them from the messages with text: the time to the first one, the gaps between them, and their mean.
func servedIn(a *peer.Answer) served {
	var gaps []float64
	var first, recent time.Time
	for _, m := range a.Messages() {
		var in struct{ Choices []struct{ Text string } }
		if json.Unmarshal([]byte(m.Text), &in) != nil || len(in.Choices) == 0 || in.Choices[0].Text == "" {
			continue
		}
		if first.IsZero() {
			first = m.At
		} else {
			gaps = append(gaps, m.At.Sub(recent).Seconds())
		}
		recent = m.At
	}
	slices.Sort(gaps)
	return served{first.Sub(a.Began).Seconds(), recent.Sub(first).Seconds() / float64(len(gaps)), gaps[len(gaps)/2], recent.Sub(a.Began).Seconds()}
}

// TestBenchOllama benchmarks a real Ollama, which reports token counts and times.
func TestBenchOllama(t *testing.T) {
	server := peer.Ollama(t)
	tap, between := startTap(t, server.URL)
	r, _ := bencher(t, between, "-p", "Once upon a time there was a whale.", "-n", "24", "--requests", "4", "--repeats", "1", "--warmup", "1")
	answers := tap.Of("/api/generate")
	if len(r.Requests) != 5 || len(answers) != 5 || r.Bench.Failed != 0 {
		t.Fatalf("%d requests, %d answers, %d failed", len(r.Requests), len(answers), r.Bench.Failed)
	}
	for i, a := range answers {
		messages, got := a.Messages(), &r.Requests[i]
		var reported struct {
			Prompt    int   `json:"prompt_eval_count"`
			Generated int   `json:"eval_count"`
			Load      int64 `json:"load_duration"`
			Fill      int64 `json:"prompt_eval_duration"`
			Decode    int64 `json:"eval_duration"`
		}
		if err := json.Unmarshal([]byte(messages[len(messages)-1].Text), &reported); err != nil || reported.Generated == 0 {
			t.Fatalf("the last message of Ollama is %v: %v", messages[len(messages)-1], err)
		}
		if int(got.Prompt.V) != reported.Prompt || got.Generated != reported.Generated {
			t.Errorf("request %d: %d and %d tokens, Ollama reports %+v", i, int(got.Prompt.V), got.Generated, reported)
		}
		if got.Cold != (i == 0) { // the first one, of the warm-up, loads the model
			t.Errorf("request %d: cold is %v after a load of %v", i, got.Cold, time.Duration(reported.Load))
		}
		if 1e9*got.TTFT.V < float64(reported.Fill) || 1e9*got.E2EL.V < float64(reported.Fill+reported.Decode) {
			t.Errorf("request %d: TTFT %v s, E2EL %v s are shorter than Ollama took: %+v", i, got.TTFT, got.E2EL, reported)
		}
	}
	if r.Engine.Name != "Ollama" && r.Engine.Name != "ollama" {
		t.Errorf("the engine is called %q", r.Engine.Name)
	}
}
