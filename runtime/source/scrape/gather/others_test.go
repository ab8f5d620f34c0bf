package gather_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// TestEarlier: the first report has what was counted before it, over all series, and later ones do not.
func TestEarlier(t *testing.T) {
	g, text := newGatherer(engine.VLLM), sample(t, "vllm")
	read(t, g, text)
	first := g.Report(0).Earlier
	if first == nil || first.Generated.V != 20480 || first.Finished.V != 127 || first.Prompt.V != 91234 {
		t.Fatalf("%+v", first)
	}
	read(t, g, doubled(text))
	then := g.Report(second)
	if then.Earlier != nil {
		t.Error("a later report has earlier counts")
	}
	if d := cmp.Diff(first.Histograms, then.Histograms); d != "" { // as much again has come
		t.Errorf("histograms until the first report, and of the interval after it: %s", d)
	}
	if d := cmp.Diff(first.Counts, then.Counts); d != "" {
		t.Errorf("counts: %s", d)
	}
}

// TestRanks: the state of data-parallel ranks is kept apart, and the same thing under two names counts once.
func TestRanks(t *testing.T) {
	g := newGatherer(engine.VLLM)
	read(t, g, "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 5\n"+
		"vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n"+
		"vllm:gpu_cache_usage_perc{engine=\"0\"} 0.5\nvllm:gpu_cache_usage_perc{engine=\"1\"} 0.25\n")
	p := g.Report(0)
	want := []event.Rank{
		{Name: "0", Running: event.ReportedValue(3), KVUsage: event.ReportedValue(0.5)},
		{Name: "1", Running: event.ReportedValue(5), KVUsage: event.ReportedValue(0.25)},
	}
	if d := cmp.Diff(want, p.Ranks); d != "" || p.Running.V != 8 || p.KVUsage.V != 0.375 {
		t.Errorf("%s, sum %v and %v", d, p.Running, p.KVUsage)
	}
	g = newGatherer(engine.VLLM)
	read(t, g, "vllm:num_requests_running{engine=\"0\"} 3\n")
	if p := g.Report(0); p.Ranks != nil {
		t.Errorf("a single rank: %+v", p.Ranks)
	}
}

// TestAdapters: series of earlier names stay in the text.
func TestAdapters(t *testing.T) {
	g := newGatherer(engine.VLLM)
	read(t, g, "vllm:num_requests_running 1\n"+
		"vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"old\",waiting_lora_adapters=\"\"} 1.7e9\n"+
		"vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"sql,chat\",waiting_lora_adapters=\"chat, law\"} 1.8e9\n")
	if d := cmp.Diff([]string{"sql", "chat", "law"}, g.Report(0).Adapters); d != "" {
		t.Error(d)
	}
	read(t, g, "vllm:num_requests_running 1\n")
	if p := g.Report(second); p.Adapters != nil {
		t.Errorf("adapters %v", p.Adapters)
	}
}

// TestHTTPErrors: counters of the HTTP server belong to a vLLM, but do not identify one.
func TestHTTPErrors(t *testing.T) {
	g := newGatherer(engine.VLLM)
	for _, n := range []string{"3", "7"} {
		read(t, g, "vllm:num_requests_running 1\nhttp_requests_total{handler=\"/v1/completions\",status=\"5xx\"} "+n+"\n")
	}
	want := []event.NamedReading{{Name: "http_5xx", Reading: event.DerivedValue(4)}}
	if d := cmp.Diff(want, g.Report(second).Counts); d != "" {
		t.Error(d)
	}
	if e, _ := engine.WithMetric("http_requests_total"); e != nil {
		t.Errorf("it is the metric of a %s", e.Kind)
	}
}

// TestHitsCountedBeforeThePrompt: prefill counts each computed token once, also where an engine counts hits when it
// schedules a prompt and the prompt when it has ended.
func TestHitsCountedBeforeThePrompt(t *testing.T) {
	g := newGatherer(engine.VLLM)
	sum := 0.0
	for i, c := range [][2]int{{0, 0}, {740, 0}, {740, 1000}, {740, 1000}} {
		text := fmt.Sprintf("vllm:prefix_cache_queries_total %d\nvllm:prefix_cache_hits_total %d\nvllm:prompt_tokens_total %d\n", c[0]*1000/740, c[0], c[1])
		if err := g.Read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if p := g.Report(int64(i) * 1e9); p.Prefill.OK() {
			sum += p.Prefill.V * float64(i)
		}
	}
	if sum != 260 {
		t.Errorf("%v tokens computed, want 260", sum)
	}
}
