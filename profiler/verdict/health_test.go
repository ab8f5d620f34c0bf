package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// TestHealth follows an engine whose KV cache fills up for some seconds: the health follows late, and names the time at
// which it began.
func TestHealth(t *testing.T) {
	var j Judge
	for _, c := range []struct {
		now    time.Duration
		kv     float64
		status Status
		since  time.Duration
	}{
		{0, .5, Healthy, 0},
		{time.Second, .96, Watched, 0},
		{3999 * time.Millisecond, .97, Watched, 0},
		{4 * time.Second, .97, Degraded, time.Second},
		{5 * time.Second, .5, Degraded, time.Second}, // for a moment
		{6 * time.Second, .96, Degraded, time.Second},
		{9500 * time.Millisecond, .5, Healthy, 0},
		{10 * time.Second, .96, Watched, 0}, // again
		{13 * time.Second, .96, Degraded, 10 * time.Second},
	} {
		e := calm()
		e.Now, e.KV, e.ITL = event.Time(c.now), event.MeasuredValue(c.kv), gaps(100, 1e7, 1e7, 1e7)
		h := HealthOf(j.Judge(e), e.Now, false)
		if h.Status != c.status || h.Status == Degraded && (h.Verdict.Topic != "KV cache" || h.Verdict.Since != event.Time(c.since)) {
			t.Errorf("at %v: status %d by %+v, want %d since %v", c.now, h.Status, h.Verdict, c.status, c.since)
		}
	}
	if h := HealthOf(nil, 0, false); h.Status != Unjudged {
		t.Errorf("without verdicts: %+v", h)
	}
}

// TestHealthIsOneRule checks each status: none says HEALTHY above an insight that is yellow or red, and what is measured
// for long is not "no verdict".
func TestHealthIsOneRule(t *testing.T) {
	decode := func(ms int64) func(e *Evidence) {
		return func(e *Evidence) { e.ITL = gaps(1000, float64(ms*1e6), ms*1e6, ms*1e6) }
	}
	with := func(all ...func(e *Evidence)) func(e *Evidence) {
		return func(e *Evidence) {
			for _, change := range all {
				change(e)
			}
		}
	}
	ttft := func(e *Evidence) { e.Request, e.TTFT = 1, event.DerivedValue(.3) }
	none := func(e *Evidence) { e.Target = 0 }
	stalls := func(lost int64) func(e *Evidence) {
		return func(e *Evidence) {
			e.Losses.Observed, e.Stalls.N[Unknown], e.Stalls.NS[Unknown], e.Losses.NS[Unknown] = 60e9, 144, lost, lost
		}
	}
	for name, c := range map[string]struct {
		change     func(e *Evidence)
		untargeted bool
		status     Status
		topic      string
	}{
		"nothing measured":                   {func(*Evidence) {}, false, Unjudged, ""},
		"fast":                               {decode(10), false, Healthy, "decode"},
		"below reading speed":                {with(none, decode(80)), true, Watched, "decode"},
		"slow":                               {with(none, decode(300)), true, Degraded, "decode"},
		"slow, within a target":              {with(decode(300), func(e *Evidence) { e.TPOT = 400e6 }), false, Healthy, "decode"},
		"fast, over a target":                {with(decode(20), func(e *Evidence) { e.TPOT = 10e6 }), false, Degraded, "decode"},
		"one slow request":                   {with(decode(10), ttft), false, Watched, "TTFT"},
		"TTFT without a target":              {with(none, ttft), true, NoTarget, "TTFT"},
		"a fast engine without one":          {with(none, ttft, decode(10)), true, Healthy, "decode"},
		"a cold start":                       {with(ttft, func(e *Evidence) { e.Cold = true }), false, Unjudged, ""},
		"dropped events":                     {with(decode(10), func(e *Evidence) { e.Dropped = 7 }), false, Watched, "dropped events"},
		"an imbalanced router":               {with(decode(10), func(e *Evidence) { e.Layer, e.MaxMean, e.Experts, e.LayerPicks = 1, 9, 16, 10_000 }), false, Healthy, "decode"},
		"144 stalls of unknown cause":        {with(decode(10), stalls(7e9)), false, Watched, "token gaps"},
		"144 stalls that took little":        {with(decode(10), stalls(5e9)), false, Healthy, "decode"},
		"a server's histograms, no target":   {with(none, func(e *Evidence) { e.Server = true }), true, NoTarget, ""},
		"a server's speed within the target": {func(e *Evidence) { e.Server, e.Served.Speed, e.TPOT = true, event.DerivedValue(12), 100e6 }, false, Healthy, "decode"},
	} {
		e := calm()
		c.change(e)
		h := HealthOf(new(Judge).Judge(e), e.Now, c.untargeted)
		topic := ""
		if h.Verdict != nil {
			topic = h.Verdict.Topic
		}
		if h.Status != c.status || topic != c.topic {
			t.Errorf("%s: status %d by %q, want %d by %q", name, h.Status, topic, c.status, c.topic)
		}
	}
}

// TestOneRequestIsNoHealth checks that TTFT counts against the health only with a target that somebody gave, and for
// most of several requests; an imbalanced router does not.
func TestOneRequestIsNoHealth(t *testing.T) {
	slow := func(change func(e *Evidence)) Verdict {
		e := calm()
		e.Request, e.TTFT, e.Given, e.Warm = 9, event.DerivedValue(.3), true, gaps(5, 3e8, 3e8, 3e8)
		change(e)
		return judged(e)["TTFT"]
	}
	for name, c := range map[string]struct {
		change func(e *Evidence)
		want   bool
	}{
		"five requests":      {func(*Evidence) {}, true},
		"four":               {func(e *Evidence) { e.Warm.Count = 4 }, false},
		"a median in target": {func(e *Evidence) { e.Warm.P50.At = 2e8 }, false},
		"the default target": {func(e *Evidence) { e.Given = false }, false},
	} {
		if v := slow(c.change); v.Severity != Bad || v.Degrades != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
	e := calm()
	e.Layer, e.MaxMean, e.Experts, e.LayerPicks = 1, 9, 16, 10_000
	if v := judged(e)["experts"]; v.Severity != Info || v.Degrades {
		t.Errorf("imbalance: %+v", v)
	}
}

// TestRemediesNameTheEnginesSettings checks the flags of each engine, and that none is invented for others.
func TestRemediesNameTheEnginesSettings(t *testing.T) {
	known := []string{"--parallel", "--ctx", "--threads", smallerChunks, moreKV, shorterDrafts}
	for _, e := range engine.Engines {
		NameSettings(string(e.Kind), e.Settings)
		for words := range e.Settings {
			if !slices.Contains(known, words) {
				t.Errorf("%s names %q, which no remedy has", e.Kind, words)
			}
		}
	}
	for name, want := range map[string]string{
		"": "(--parallel)", "llama.cpp": "(-np)", "Ollama": "(OLLAMA_NUM_PARALLEL)", "vLLM": "(--max-num-seqs)", "SGLang": "(--max-running-requests)",
		"TGI": "(--max-batch-size)", "TensorRT-LLM": "(--max_batch_size)", "LMDeploy": "(--max-batch-size)", "mine": "more slots, or",
	} {
		if got := Remedy(name, Causes[Queue].Remedy); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	e := calm()
	e.Engine, e.KV = "vLLM", event.MeasuredValue(1)
	if v := judged(e)["KV cache"]; v.Try != "a larger context (--max-model-len)" {
		t.Errorf("verdict %+v", v)
	}
	if got := Remedy("vLLM", Causes[PromptOfOther].Remedy); !strings.Contains(got, "smaller prompt chunks (--max-num-batched-tokens), shorter") {
		t.Errorf("remedy %q", got)
	}
}
