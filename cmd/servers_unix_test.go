//go:build unix

package cmd

import (
	"bufio"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/report"
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

// serverRounds is how often a benchmark is repeated until two clocks agree on a busy machine.
const serverRounds = 6

// TestBenchLlamaServer benchmarks a real llama-server. Token counts equal those of its metrics and answers; no time is
// shorter than the server reports; TPOT is near the server's; and the metrics are those that the messages seen in
// between give.
func TestBenchLlamaServer(t *testing.T) {
	server := peer.LlamaServer(t, "", "--metrics", "--parallel", "1", "--ctx-size", "1024", "--threads", "1")
	const prompts, outputs = "llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"
	for round := 1; ; round++ {
		tap := peer.NewTap(t, server.URL)
		was := [2]int{counter(t, server.URL, prompts), counter(t, server.URL, outputs)}
		r, _ := bencher(t, tap.URL, "--prompt-tokens", "48", "-n", "96", "--requests", "9", "--repeats", "1", "--warmup", "1")
		answers := tap.Of("/v1/completions")
		if len(r.Requests) != 10 || len(answers) != 10 || r.Bench.Failed != 0 {
			t.Fatalf("%d requests, %d answers, %d failed", len(r.Requests), len(answers), r.Bench.Failed)
		}
		var sums [2]int
		var tpot []float64
		for i, a := range answers {
			reported, got := spokenIn(t, a), &r.Requests[i]
			if int(got.Prompt.V) != reported.prompt || got.Generated != reported.generated || got.Generated != 96 || got.Prompt.V != 48 {
				t.Errorf("request %d: %d and %d tokens, the server says %+v", i, int(got.Prompt.V), got.Generated, reported)
			}
			if 1e3*got.TTFT.V < reported.fill || 1e3*got.E2EL.V < reported.fill+reported.decode {
				t.Errorf("request %d: TTFT %v s, E2EL %v s are shorter than the server took: %+v", i, got.TTFT, got.E2EL, reported)
			}
			sums[0], sums[1] = sums[0]+int(got.Prompt.V), sums[1]+got.Generated
			tpot = append(tpot, 1e3*got.TPOT.V/(reported.decode/float64(reported.generated-1)))
		}
		for end := time.Now().Add(20 * time.Second); counter(t, server.URL, outputs)-was[1] < sums[1] && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond) // until the last slot is released
		}
		if now := [2]int{counter(t, server.URL, prompts) - was[0], counter(t, server.URL, outputs) - was[1]}; now != sums {
			t.Errorf("prompts and outputs have %v tokens, by the server's metrics %v", sums, now)
		}
		theirs := servedIn(answers[1:]) // without the warm-up
		same := theirs.check(t, &r.Bench.Points[0])
		ratio := median(tpot)
		t.Logf("round %d: TPOT is %.4f of what the server says; seen in between %+v", round, ratio, theirs)
		if same && math.Abs(ratio-1) < 0.1 {
			return
		}
		if round == serverRounds {
			t.Fatalf("in %d rounds the numbers never agreed with the server's and with those seen in between", round)
		}
	}
}

// served holds the medians of completions as a third party between client and server sees them, in s.
type served struct{ ttft, tpot, itl, e2el float64 }

// servedIn computes them from the messages with text: the time to the first one, the gaps between them, and their mean.
func servedIn(answers []*peer.Answer) served {
	var ttft, tpot, itl, e2el []float64
	for _, a := range answers {
		var first, recent time.Time
		tokens := 0
		for _, m := range a.Messages() {
			var in struct{ Choices []struct{ Text string } }
			if json.Unmarshal([]byte(m.Text), &in) != nil || len(in.Choices) == 0 || in.Choices[0].Text == "" {
				continue
			}
			if first.IsZero() {
				first = m.At
			} else {
				itl = append(itl, m.At.Sub(recent).Seconds())
			}
			tokens++
			recent = m.At
		}
		ttft, e2el = append(ttft, first.Sub(a.Began).Seconds()), append(e2el, recent.Sub(a.Began).Seconds())
		tpot = append(tpot, recent.Sub(first).Seconds()/float64(tokens-1))
	}
	return served{median(ttft), median(tpot), median(itl), median(e2el)}
}

// check compares with what llmtop reports: the medians are near each other, and the means of llmtop fit each other,
// whatever the machine did meanwhile.
func (s served) check(t *testing.T, p *report.Point) (same bool) {
	t.Helper()
	if mean := (p.E2EL.Mean.V - p.TTFT.Mean.V) / 95; math.Abs(mean/p.TPOT.Mean.V-1) > 0.05 { // a first message of several tokens leaves fewer after it
		t.Errorf("mean TPOT is %v, of E2EL and TTFT %v", p.TPOT.Mean.V, mean)
	}
	if n := p.Tokens; n.Generated != 9*96 || n.Prompt != 9*48 || n.Requests != 9 {
		t.Errorf("it counts %+v", n)
	}
	near := func(v report.Number, want, atMost float64) bool { return math.Abs(v.V-want) <= atMost*want }
	return near(p.TPOT.P50, s.tpot, 0.1) && near(p.ITL.P50, s.itl, 0.1) && near(p.E2EL.P50, s.e2el, 0.1) && near(p.TTFT.P50, s.ttft, 0.25)
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// TestBenchOllama benchmarks a real Ollama, which reports token counts and times.
func TestBenchOllama(t *testing.T) {
	server := peer.Ollama(t)
	tap := peer.NewTap(t, server.URL)
	r, _ := bencher(t, tap.URL, "-p", "Once upon a time there was a whale.", "-n", "24", "--requests", "4", "--repeats", "1", "--warmup", "1")
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
