package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// calm returns evidence for which no rule fires.
func calm() *Evidence { return &Evidence{Now: 1e9, Target: 200 * time.Millisecond, Layer: -1} }

// judged returns the verdicts of a new Judge by topic.
func judged(e *Evidence) map[string]Verdict {
	out := map[string]Verdict{}
	for _, v := range new(Judge).Judge(e) {
		out[v.Topic] = v
	}
	return out
}

func gaps(count uint64, mean float64, p50, p99 int64) metric.Distribution {
	s := metric.Summary{Count: count, Mean: mean, P50: p50, P99: p99}
	return s.Distribution()
}

// lost returns losses of 4 stalls that took n of 1,000 ms.
func lost(c Cause, n int64) (l Losses) {
	for range 4 {
		l.Add(&Explanation{Cause: c, Lost: n * milli / 4, Explains: n * milli / 4}, 1)
	}
	l.Observed = 1000 * milli
	return l
}

func profit(gain float64, plain uint64) *metric.Profit {
	return &metric.Profit{
		Passes: 230, Plain: plain, Accepted: event.DerivedValue(0.53), PerPass: event.DerivedValue(2.5), DraftShare: event.DerivedValue(0.18), Gain: event.DerivedValue(gain),
	}
}

const milli = int64(time.Millisecond)

// TestRules checks every rule at its limit: on it or beyond it the rule fires and reports value and limit, just below
// it does not.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name     string
		topic    string
		fires    func(e *Evidence)
		severity Severity
		text     []string // parts of the text
		evidence []string // parts of the evidence
		try      string
		silent   func(e *Evidence) // goes back below the limit
	}{
		{
			name: "speculation gains", topic: "speculation", severity: Good, text: []string{"gains", "1.05x", "2.50 tokens per pass", "53 %"},
			evidence: []string{"230 passes with drafts, compared with 40 passes without drafts; drafts take 18 % of the time"},
			fires:    func(e *Evidence) { e.Profit = profit(1.05, 40) },
			silent:   func(e *Evidence) { e.Profit.Gain = event.Absent(event.NotYet) },
		},
		{
			name: "speculation costs", topic: "speculation", severity: Watch, text: []string{"costs speed", "0.940x"}, try: "shorter drafts",
			evidence: []string{"as modelled from drafts of different lengths"},
			fires:    func(e *Evidence) { e.Profit = profit(0.94, 0) },
			silent:   func(e *Evidence) { e.Profit = nil },
		},
		{
			name: "speculation gains nothing", topic: "speculation", severity: Info, text: []string{"gains nothing"}, try: "agrees more often",
			fires:  func(e *Evidence) { e.Profit = profit(0.95, 40) },
			silent: func(e *Evidence) { e.Profit = nil },
		},
		{
			name: "engine failed", topic: "engine", severity: Bad, text: []string{"no such file"},
			fires:  func(e *Evidence) { e.Failed = "demo.gguf: no such file" },
			silent: func(e *Evidence) { e.Failed = "" },
		},
		{
			name: "dropped events", topic: "dropped events", severity: Bad, text: []string{"1 204 events", "token 1200, stage 4"}, try: "token rate",
			fires:  func(e *Evidence) { e.Dropped, e.DroppedKinds = 1204, "token 1200, stage 4" },
			silent: func(e *Evidence) { e.Dropped = 0 },
		},
		{
			name: "unmeasured requests", topic: "unmeasured requests", severity: Bad, text: []string{"500 requests", "10.0k were running"}, try: "fewer",
			fires:  func(e *Evidence) { e.Unmeasured, e.MaxOpen = 500, 10_000 },
			silent: func(e *Evidence) { e.Unmeasured = 0 },
		},
		{
			name: "p99 of gaps", topic: "token gaps", severity: Watch, try: "prompt chunks",
			text: []string{"p99 30.0 ms is 3.0x p50 10.0 ms", "limit 3x", "while a prompt was processed"}, evidence: []string{"prompt of other 10.0 ms (5)", "unknown 7.00 ms (1)"},
			fires: func(e *Evidence) {
				e.ITL = gaps(100, 1e7, 10*milli, 30*milli)
				for range 5 {
					e.Stalls.Add(&Explanation{Cause: PromptOfOther, Lost: 3 * milli, Explains: 2 * milli}, 1)
				}
				e.Stalls.Add(&Explanation{Lost: 2 * milli}, 1)
			},
			silent: func(e *Evidence) { e.ITL.P99.At-- },
		},
		{
			name: "p99 of few gaps", topic: "token gaps", severity: Watch, text: []string{"stalls of unknown cause"},
			fires: func(e *Evidence) {
				e.ITL = gaps(100, 1e6, milli, 11*milli)
				e.Stalls.Add(&Explanation{Lost: 2 * milli}, 1)
			},
			silent: func(e *Evidence) { e.ITL.Count = 99 },
		},
		{
			name: "p99 of fast gaps", topic: "token gaps", severity: Watch, text: []string{"11.0x"},
			fires:  func(e *Evidence) { e.ITL = gaps(100, 1e6, milli, 11*milli) },
			silent: func(e *Evidence) { e.ITL.P99.At-- },
		},
		{
			name: "prompt cache", topic: "prompt cache", severity: Watch, try: "keep the start of prompts the same",
			text:     []string{"50 % of prefill, 100 ms in 5 requests", "a timestamp differs"},
			evidence: []string{"messages[0].content"},
			fires: func(e *Evidence) {
				e.CacheLost, e.CachePrefill, e.CacheMissed = 100*time.Millisecond, 200*time.Millisecond, 5
				e.CacheWhy, e.CachePlace = "a timestamp differs", "messages[0].content, character 7"
			},
			silent: func(e *Evidence) { e.CachePrefill++ },
		},
		{
			name: "prompt cache of few requests", topic: "prompt cache", severity: Watch, text: []string{"was not reused"},
			fires: func(e *Evidence) {
				e.CacheLost, e.CachePrefill, e.CacheMissed, e.CacheWhy = time.Second, time.Second, 5, "the same text was not reused"
			},
			silent: func(e *Evidence) { e.CacheMissed = 4 },
		},
		{
			name: "missed targets", topic: "targets", severity: Bad,
			text: []string{"p99 ITL misses the target of 10.0 ms in 3 of 5 requests, E2EL misses the target of 200 ms in 9 of 9 requests of the last minute"},
			fires: func(e *Evidence) {
				e.ITLs, e.E2ELs = Judged{10 * time.Millisecond, 5, 3}, Judged{200 * time.Millisecond, 9, 9}
			},
			silent: func(e *Evidence) {
				e.ITLs, e.E2ELs = Judged{10 * time.Millisecond, 6, 3}, Judged{200 * time.Millisecond, 4, 4}
			},
		},
		{
			name: "slow decode", topic: "decode", severity: Bad, text: []string{"4.99 tok/s", "limit 5"}, evidence: []string{"200 ms over 100 tokens", "no cause found"},
			fires:  func(e *Evidence) { e.ITL = gaps(100, 1e9/4.99, 0, 0) },
			silent: func(e *Evidence) { e.ITL.Count = 49 },
		},
		{
			name: "slow decode with a cause", topic: "decode", severity: Bad, text: []string{"is slow (limit 5): held at the CPU quota"}, try: "CPU quota",
			fires:  func(e *Evidence) { e.ITL, e.DecodeLosses = gaps(100, 1e9/4.99, 0, 0), lost(CPUQuota, 100) },
			silent: func(e *Evidence) { e.ITL.Count = 49 },
		},
		{
			name: "lost time", topic: "lost time", severity: Watch, text: []string{"10 % of", "limit 10 %", "more threads than cores"}, evidence: []string{"own threads 100 ms (4)"}, try: "--threads",
			fires:  func(e *Evidence) { e.Losses = lost(OwnThreads, 100) },
			silent: func(e *Evidence) { e.Losses = lost(OwnThreads, 99) },
		},
		{
			name: "lost time of unknown cause", topic: "lost time", severity: Watch, text: []string{"lost"}, try: "--threads",
			fires:  func(e *Evidence) { e.Losses = lost(OwnThreads, 100) },
			silent: func(e *Evidence) { e.Losses = lost(Unknown, 900) },
		},
		{
			name: "memory-bound", topic: "bound", severity: Info, text: []string{"6.00 GB/s", "60 %", "from 60 %", "memory-bound"}, evidence: []string{"10.0 GB/s"}, try: "batch",
			fires: func(e *Evidence) {
				e.Running, e.BusyShare, e.Bandwidth, e.Wall = 1, event.MeasuredValue(.91), event.MeasuredValue(6e9), event.MeasuredValue(1e10)
			},
			silent: func(e *Evidence) { e.Losses = lost(OtherProcesses, 100) },
		},
		{
			name: "idle cores", topic: "bound", severity: Info, text: []string{"CPU 49 %", "below 50 %", "1 thread on 2.00 cores"}, try: "--threads 2",
			fires: func(e *Evidence) {
				e.Threads, e.Cores = 1, 2
				e.Running, e.BusyShare, e.CPU = 1, event.MeasuredValue(.95), event.MeasuredValue(.49)
			},
			silent: func(e *Evidence) { e.CPU = event.MeasuredValue(.5) },
		},
		{
			name: "more threads are no remedy", topic: "bound", severity: Info, text: []string{"CPU"}, try: "threads",
			fires: func(e *Evidence) {
				e.Threads, e.Cores = 1, 2
				e.Running, e.BusyShare, e.CPU = 1, event.MeasuredValue(.95), event.MeasuredValue(.1)
			},
			silent: func(e *Evidence) { e.Threads = 2 },
		},
		{
			name: "not judged while paced", topic: "bound", severity: Info, text: []string{"CPU"}, try: "threads",
			fires: func(e *Evidence) {
				e.Threads, e.Cores = 1, 2
				e.Running, e.BusyShare, e.CPU = 1, event.MeasuredValue(.95), event.MeasuredValue(.1)
			},
			silent: func(e *Evidence) { e.Pace = 40 },
		},
		{
			name: "not judged while idle", topic: "bound", severity: Info, text: []string{"CPU"}, try: "threads",
			fires: func(e *Evidence) {
				e.Threads, e.Cores = 1, 2
				e.Running, e.BusyShare, e.CPU = 1, event.MeasuredValue(.91), event.MeasuredValue(.1)
			},
			silent: func(e *Evidence) { e.BusyShare = event.MeasuredValue(.9) },
		},
		{
			name: "imbalanced experts", topic: "experts", severity: Info, text: []string{"L7", "3 of 16", "58 %", "max/mean 3.30 in the last minute", "limit 3"},
			evidence: []string{"experts 1, 4, 9 of layer 7", "16000 picks"}, try: "fastest device",
			fires: func(e *Evidence) { // 3100 picks of the hottest expert are at least 2877 of another sample, 3 times the mean
				e.Layer, e.MaxMean, e.LayerPicks, e.Experts, e.Hot, e.HotShare = 7, 3.3, 16_000, 16, []int{1, 4, 9}, .58
			},
			silent: func(e *Evidence) { e.MaxMean = 3.2 },
		},
		{
			name: "experts of few picks", topic: "experts", severity: Info, text: []string{"L0"}, try: "fastest device",
			fires:  func(e *Evidence) { e.Layer, e.MaxMean, e.LayerPicks, e.Experts = 0, 9, 1000, 16 },
			silent: func(e *Evidence) { e.LayerPicks = 999 },
		},
		{
			name: "memory", topic: "memory", severity: Bad, text: []string{"21.7 GB of 24.0 GB", "limit 90 %"}, try: "context",
			fires:  func(e *Evidence) { e.MemUsed, e.MemTotal = event.MeasuredValue(21.7e9), event.MeasuredValue(24e9) },
			silent: func(e *Evidence) { e.MemUsed = event.MeasuredValue(21.6e9) },
		},
		{
			name: "memory not reported", topic: "memory", severity: Bad, text: []string{"may swap"}, try: "context",
			fires:  func(e *Evidence) { e.MemUsed, e.MemTotal = event.MeasuredValue(2), event.MeasuredValue(2) },
			silent: func(e *Evidence) { e.MemTotal = event.Absent(event.NotPermitted) },
		},
		{
			name: "queue", topic: "queue", severity: Watch, text: []string{"50 % of TTFT", "100 ms for each of 5 requests"}, try: "--parallel",
			fires:  func(e *Evidence) { e.Queue = Queued{5, 500 * milli, 1000 * milli} },
			silent: func(e *Evidence) { e.Queue.Wait-- },
		},
		{
			name: "queue of few requests", topic: "queue", severity: Watch, text: []string{"63 % of TTFT", ": all 4 slots busy"}, try: "--parallel",
			fires:  func(e *Evidence) { e.Queue, e.Running, e.Slots = Queued{5, 6300 * milli, 10_000 * milli}, 4, 4 },
			silent: func(e *Evidence) { e.Queue.Requests = 4 },
		},
		{
			name: "KV cache", topic: "KV cache", severity: Watch, text: []string{"96 % full", "limit 95 %"}, try: "--ctx",
			fires:  func(e *Evidence) { e.KV = event.MeasuredValue(.96) },
			silent: func(e *Evidence) { e.KV = event.MeasuredValue(.95) },
		},
	} {
		e := calm()
		c.fires(e)
		v, ok := judged(e)[c.topic]
		if !ok || v.Severity != c.severity || !strings.Contains(v.Try, c.try) {
			t.Errorf("%s: %+v, want severity %d and to try %q", c.name, v, c.severity, c.try)
		}
		for _, part := range c.text {
			if !strings.Contains(v.Text, part) {
				t.Errorf("%s: %q lacks %q", c.name, v.Text, part)
			}
		}
		for _, part := range c.evidence {
			if !strings.Contains(v.Evidence, part) {
				t.Errorf("%s: evidence %q lacks %q", c.name, v.Evidence, part)
			}
		}
		if c.silent(e); len(judged(e)[c.topic].Text) > 0 {
			t.Errorf("%s: below its limit it reads %q", c.name, judged(e)[c.topic].Text)
		}
	}
}

func TestCalmEvidenceMakesNoVerdicts(t *testing.T) {
	if got := judged(calm()); len(got) != 0 {
		t.Errorf("verdicts without evidence: %v", got)
	}
}

func TestTTFTAgainstItsTarget(t *testing.T) {
	for _, c := range []struct {
		ttft     float64 // s
		cold     bool
		severity Severity
		text     string
		try      bool
	}{
		{.0499, false, Good, "TTFT 49.9 ms, target 200 ms (real time): 71 % of it prompt", false},
		{.050, false, Good, "(interactive)", false},
		{.100, false, Good, "(within target)", false},
		{.200, false, Good, "TTFT 200 ms, target 200 ms", false},
		{.201, false, Bad, "TTFT 201 ms, 1.00 ms over the target of 200 ms: 71 % of it prompt", false},
		{.900, true, Info, "Cold TTFT 900 ms, including the model load", false},
	} {
		e := calm()
		e.Loaded = c.cold
		e.Request, e.TTFT, e.Cold, e.Dominant, e.DomShare, e.DomPerTok, e.Prompt = 4, event.DerivedValue(c.ttft), c.cold, "prompt", .71, 5e5, 30
		v := judged(e)["TTFT"]
		if v.Severity != c.severity || !strings.Contains(v.Text, c.text) || (v.Try != "") != c.try {
			t.Errorf("%v s, cold %v: %+v, want severity %d and %q", c.ttft, c.cold, v, c.severity, c.text)
		}
		if v.Evidence != "request #4, 30 prompt tokens, prompt 500 µs per prompt token" {
			t.Errorf("evidence %q", v.Evidence)
		}
	}
	e := calm()
	e.Request, e.TTFT, e.Dominant, e.DomShare, e.Prompt = 4, event.DerivedValue(.3), "other", 1, 30
	if v := judged(e)["TTFT"]; v.Text != "TTFT 300 ms, 100 ms over the target of 200 ms" || v.Try != "" || v.Evidence != "request #4, 30 prompt tokens" {
		t.Errorf("without reported components: %+v", v)
	}
	e.Why = &Explanation{Cause: OtherProcesses, Lost: 100 * milli, Explains: 29 * milli}
	if v := judged(e)["TTFT"]; v.Try != "" || strings.Contains(v.Evidence, Causes[OtherProcesses].Text) {
		t.Errorf("a cause of less than a tenth of TTFT: %+v", v)
	}
	e.Why.Explains = 60 * milli
	if v := judged(e)["TTFT"]; v.Try != Causes[OtherProcesses].Remedy {
		t.Errorf("a cause of a fifth of TTFT: %+v", v)
	}
	e.Why = nil
	e.Cold = true
	if v := judged(e)["TTFT"]; strings.Contains(v.Text, "including") || !strings.Contains(v.Text, "without the model load") {
		t.Errorf("cold, of an unknown load: %+v", v)
	}
	e.DeviceStart = true
	if v := judged(e)["TTFT"]; !strings.HasPrefix(v.Text, "Cold TTFT 300 ms, with the device start") {
		t.Errorf("cold, with the device: %+v", v)
	}
	e.Cold, e.DeviceStart = false, false
	e.Prompt = 0 // unknown
	if v := judged(e)["TTFT"]; v.Evidence != "request #4" {
		t.Errorf("evidence %q without prompt tokens", v.Evidence)
	}
	e.Target, e.Dominant, e.DomShare = 0, "queue", .94
	if v := judged(e)["TTFT"]; v.Text != "TTFT 300 ms: 94 % of it queue" || v.Severity != Info {
		t.Errorf("without a target: %+v", v)
	}
	e = calm()
	e.Request, e.TTFT = 4, event.Absent(event.NotYet)
	if v, ok := judged(e)["TTFT"]; ok {
		t.Errorf("a request without a token has the verdict %q", v.Text)
	}
}

// TestSlowFirstTokensDoNotSlowDecoding checks that what took the time of first tokens is not named for slow decoding.
func TestSlowFirstTokensDoNotSlowDecoding(t *testing.T) {
	for _, c := range []Cause{OwnPrompt, Queue, ModelLoad, DiskReads} {
		e := calm()
		e.ITL, e.Losses = gaps(100, 1e9/18, 0, 0), lost(c, 900)
		if v := judged(e)["decode"]; strings.Contains(v.Text, Causes[c].Text) || v.Try == Causes[c].Remedy {
			t.Errorf("%v of first tokens: %+v", c, v)
		}
	}
}

func TestDecodeSpeeds(t *testing.T) {
	for speed, want := range map[float64]Severity{4.99: Bad, 5.01: Watch, 19.9: Watch, 20.1: Good, 1604: Good} {
		e := calm()
		e.ITL = gaps(100, 1e9/speed, 0, 0)
		if v := judged(e)["decode"]; v.Severity != want || v.Try != "" {
			t.Errorf("%v tokens/s: %+v, want severity %d", speed, v, want)
		}
	}
}

// TestDecodeSpeedOfSlowEngines checks that the speed of an engine too slow for 100 tokens in a minute is judged, and that
// of a few tokens is not.
func TestDecodeSpeedOfSlowEngines(t *testing.T) {
	for _, c := range []struct {
		gaps   uint64
		mean   int64
		target time.Duration
		want   Severity
		judged bool
	}{
		{14, 769 * milli, 0, Bad, true},
		{14, 769 * milli, 100 * time.Millisecond, Bad, true},
		{60, 180 * milli, 200 * time.Millisecond, Good, true},
		{12, 769 * milli, 0, Bad, false},
		{9, 5000 * milli, 0, Bad, false},
		{99, 50 * milli, 0, Good, false},
	} {
		e := calm()
		e.ITL, e.TPOT = gaps(c.gaps, float64(c.mean), 0, 0), c.target
		if v, ok := judged(e)["decode"]; ok != c.judged || ok && v.Severity != c.want {
			t.Errorf("%+v: %v %+v", c, ok, v)
		}
	}
}

// TestBoundNamesTheLimit plants what two threads on two cores did in a second, and the share of the read bandwidth.
func TestBoundNamesTheLimit(t *testing.T) {
	const second = 1e9
	for name, c := range map[string]struct {
		share         float64
		span          int64
		running, read float64
		blocked       float64
		want          string
	}{
		"compute":         {0.59, second, 1.96 * second, 0, 0, "limited by compute, or by threads that spin: its threads ran 98 %"},
		"memory":          {0.6, second, 1.96 * second, 0, 0, "memory-bound"},
		"caches":          {1.2, second, 1.96 * second, 0, 0, "come from caches"},
		"threads waiting": {0.3, second, 0.8 * second, 0, 0, "threads that wait: its threads ran 40 %"},
		"disk":            {0.1, second, 0.8 * second, 1e8, 0.5 * second, "limited by the disk, which took 60 %"},
		"not measured":    {0.3, 0, 0, 0, 0, "not measured"},
	} {
		e := calm()
		e.Running, e.BusyShare, e.Bandwidth, e.Wall = 1, event.MeasuredValue(1), event.MeasuredValue(c.share*1e10), event.MeasuredValue(1e10)
		e.Recent = &Interval{Span: c.span, Threads: 2, Usage: event.Usage{
			Running: event.MeasuredValue(c.running), Cores: event.MeasuredValue(2), Threads: event.MeasuredValue(2),
			Read: event.MeasuredValue(c.read), Faults: event.MeasuredValue(c.read / 1e6), Blocked: event.MeasuredValue(c.blocked),
		}}
		if v := judged(e)["bound"]; !strings.Contains(v.Text, c.want) || (v.Try != "") != (name == "memory") {
			t.Errorf("%s: %+v, want %q", name, v, c.want)
		}
	}
}

// TestEveryComponentHasARemedy checks that each component that can dominate a slow TTFT has a suggestion, except the
// prompt, which may have been processed slowly for another reason than its length.
func TestEveryComponentHasARemedy(t *testing.T) {
	if remedies["prompt"] != "" {
		t.Errorf("a remedy for the prompt without a cause: %q", remedies["prompt"])
	}
	for _, name := range []string{"model load", "queue", "paced by others", "tokenize", "embed", "first token", "host to device", "device to host", "other"} {
		if remedies[name] == "" {
			t.Errorf("no remedy for %q", name)
		}
	}
}
