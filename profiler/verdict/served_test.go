package verdict

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// reported is the evidence of a server.
type reported struct {
	Served
	Target    time.Duration
	TTFT, ITL metric.Distribution
	Dominant  string
	DomShare  float64
	Slots     int
}

// add adds it.
func (r reported) add(e *Evidence) {
	r.TTFT.Origin, r.ITL.Origin = event.Reported, event.Reported
	e.Server, e.Served, e.Target, e.Given, e.Warm, e.ITL, e.Dominant, e.DomShare, e.Slots = true, r.Served, r.Target, r.Target > 0, r.TTFT, r.ITL, r.Dominant, r.DomShare, r.Slots
}

// between returns a quantile in a bucket.
func between(at, low, high int64) metric.Quantile {
	return metric.Quantile{At: at * milli, Edge: metric.Within, Low: low * milli, High: high * milli}
}

// ms returns a quantile that is known to 1 ns.
func ms(n int64) metric.Quantile {
	return metric.Quantile{At: n * milli, Edge: metric.Within, Low: n*milli - 1, High: n * milli}
}

// edge returns a quantile in the first or the last bucket.
func edge(n int64, e metric.Edge) metric.Quantile {
	if e == metric.Below {
		return metric.Quantile{At: n * milli, Edge: e, High: n * milli}
	}
	return metric.Quantile{At: n * milli, Edge: e, Low: n * milli, High: math.MaxInt64}
}

// TestServedTTFT checks reported TTFT against a target of 200 ms, also where only the bounds of a bucket are known.
func TestServedTTFT(t *testing.T) {
	for _, c := range []struct {
		name     string
		p50, p99 metric.Quantile
		severity Severity
		text     string
		try      bool
	}{
		{"slow", ms(201), ms(900), Bad, "TTFT p50 201 ms is over the target of 200 ms (p99 900 ms): 80 % of the mean is queue", true},
		{"a slow tail", ms(200), ms(201), Watch, "TTFT p99 201 ms is over the target of 200 ms (p50 200 ms)", true},
		{"fast", ms(50), ms(200), Good, "TTFT p99 200 ms, target 200 ms (p50 50.0 ms)", false},
		{"fast, in the first bucket", edge(100, metric.Below), edge(100, metric.Below), Good, "TTFT p99 <100 ms, target 200 ms", false},
		{"in a first bucket that the target divides", edge(300, metric.Below), edge(300, metric.Below), Info, "TTFT p99 is <300 ms: inconclusive for the target of 200 ms: 80 % of", false},
		{"in a bucket that the target divides", between(152, 100, 250), between(248, 100, 250), Info, "TTFT p99 is between 100 ms and 250 ms: inconclusive", false},
		{"the tail in a bucket from the target on", between(152, 100, 200), between(248, 200, 250), Watch, "TTFT p99 248 ms is over", true},
		{"in a bucket up to the target", between(152, 100, 200), between(198, 100, 200), Good, "TTFT p99 198 ms, target 200 ms", false},
		{"beyond the last bucket", edge(250, metric.Above), edge(250, metric.Above), Bad, "TTFT p50 >250 ms is over", true},
		{"beyond a last bucket below the target", ms(10), edge(150, metric.Above), Info, "TTFT p99 is >150 ms: inconclusive", false},
	} {
		e := calm()
		reported{Target: 200 * time.Millisecond, TTFT: metric.Distribution{Count: 5, Mean: 3e8, P50: c.p50, P99: c.p99}, Dominant: "queue", DomShare: .8}.add(e)
		v := judged(e)["TTFT"]
		if v.Severity != c.severity || !strings.Contains(v.Text, c.text) || (v.Try != "") != c.try {
			t.Errorf("%s: %+v, want severity %d and %q", c.name, v, c.severity, c.text)
		}
	}
	e := calm()
	reported{Target: 200 * time.Millisecond, TTFT: metric.Distribution{Count: 4, P50: ms(900), P99: ms(900)}}.add(e)
	if v, ok := judged(e)["TTFT"]; ok {
		t.Errorf("four requests give the verdict %q", v.Text)
	}
	reported{TTFT: metric.Distribution{Count: 5, P50: ms(900), P99: ms(900)}}.add(e)
	if v, ok := judged(e)["TTFT"]; ok {
		t.Errorf("without a target: %q", v.Text)
	}
}

// ranks returns ranks with the numbers of their running and waiting requests, in turn.
func ranks(numbers ...float64) (out []event.Rank) {
	for i := 0; i < len(numbers); i += 2 {
		out = append(out, event.Rank{Name: "r" + string(rune('0'+i/2)), Running: event.ReportedValue(numbers[i]), Waiting: event.ReportedValue(numbers[i+1])})
	}
	return out
}

// TestServed checks the limits of the rules for aggregate metrics.
func TestServed(t *testing.T) {
	for _, c := range []struct {
		name, topic string
		served      reported
		kv          event.Reading
		severity    Severity
		text, try   string // no text: the rule does not fire
	}{
		{"no queue", "queue", reported{Served: Served{Waiting: event.MeasuredValue(0)}}, event.MeasuredValue(.5), Watch, "", ""},
		{"not reported", "queue", reported{}, event.MeasuredValue(.5), Watch, "", ""},
		{"for memory", "queue", reported{Served: Served{Waiting: event.MeasuredValue(3), Running: event.MeasuredValue(7)}}, event.MeasuredValue(.96), Watch, "3 requests waiting, 7 running: the KV cache is 96 % full", "memory"},
		{"for slots", "queue", reported{Served: Served{Waiting: event.MeasuredValue(1), Running: event.MeasuredValue(2)}, Slots: 2}, event.MeasuredValue(.1), Watch, "1 request waiting, 2 running: all 2 slots busy", "--parallel"},
		{"for something else", "queue", reported{Served: Served{Waiting: event.MeasuredValue(3), Running: event.MeasuredValue(7)}}, event.MeasuredValue(.43), Watch, "3 requests waiting, 7 running; the KV cache is 43 % full", "concurrent requests"},
		{"uneven ranks", "queue", reported{Served: Served{Waiting: event.MeasuredValue(13), Running: event.MeasuredValue(22), Ranks: ranks(11, 2, 4, 0, 18, 11, 0, 0)}}, event.MeasuredValue(.97), Watch, "13 requests waiting, 22 running: rank r2 has 11 of those waiting, 2 of 4 ranks none and at most half as many running", "by their load"},
		{"a rank that runs none", "queue", reported{Served: Served{Waiting: event.MeasuredValue(6), Running: event.MeasuredValue(0), Ranks: ranks(0, 6, 0, 0)}}, event.MeasuredValue(.1), Watch, "rank r0 has 6 of those waiting, 1 of 2 ranks none", "by their load"},
		{"even ranks", "queue", reported{Served: Served{Waiting: event.MeasuredValue(20), Running: event.MeasuredValue(20), Ranks: ranks(10, 11, 10, 9)}}, event.MeasuredValue(.43), Watch, "20 requests waiting, 20 running; the KV cache is 43 % full", "concurrent requests"},
		{"a busy rank without a queue", "queue", reported{Served: Served{Waiting: event.MeasuredValue(5), Running: event.MeasuredValue(27), Ranks: ranks(16, 5, 11, 0)}}, event.MeasuredValue(.43), Watch, "5 requests waiting, 27 running; the KV", "concurrent requests"},
		{"one waits for a moment", "queue", reported{Served: Served{Waiting: event.MeasuredValue(1), Running: event.MeasuredValue(4), Ranks: ranks(4, 1, 0, 0)}}, event.MeasuredValue(.43), Watch, "1 request waiting, 4 running; the KV", "concurrent requests"},
		{"ranks without a queue length", "queue", reported{Served: Served{Waiting: event.MeasuredValue(5), Running: event.MeasuredValue(4), Ranks: []event.Rank{{Running: event.ReportedValue(4)}, {Running: event.ReportedValue(0)}}}}, event.MeasuredValue(.43), Watch, "5 requests waiting, 4 running; the KV", "concurrent requests"},
		{"preempted", "preemptions", reported{Served: Served{Preempted: event.DerivedValue(2)}}, event.MeasuredValue(.99), Watch, "2 requests were preempted", "fewer concurrent requests"},
		{"not preempted", "preemptions", reported{Served: Served{Preempted: event.DerivedValue(0)}}, event.MeasuredValue(.99), Watch, "", ""},
		{
			"a long tail", "token gaps",
			reported{ITL: metric.Distribution{Count: 100, P50: ms(10), P99: between(30, 30, 30)}},
			event.Reading{},
			Watch,
			"ITL p99 30.0 ms is at least 3.0x p50 10.0 ms in the last minute (limit 3x)", "prompt chunks",
		},
		{"a tail within bounds", "token gaps", reported{ITL: metric.Distribution{Count: 100, P50: ms(10), P99: ms(29)}}, event.Reading{}, Watch, "", ""},
		{"a tail with only a bound of p50", "token gaps", reported{ITL: metric.Distribution{Count: 100, P50: edge(10, metric.Below), P99: ms(29)}}, event.Reading{}, Watch, "", ""},
		{"a tail within the bounds of its buckets", "token gaps", reported{ITL: metric.Distribution{Count: 100, P50: between(11, 10, 25), P99: between(74, 50, 75)}}, event.Reading{}, Watch, "", ""},
		{"slow", "decode", reported{Served: Served{Speed: event.DerivedValue(4.9)}}, event.Reading{}, Bad, "Decode 4.90 tok/s per request is slow", ""},
		{"fast", "decode", reported{Served: Served{Speed: event.DerivedValue(48)}}, event.Reading{}, Good, "Decode 48.0 tok/s per request (reading speed 20)", ""},
		{"full", "KV cache", reported{}, event.MeasuredValue(.96), Watch, "KV cache 96 % full (limit 95 %): new requests will have to wait", "memory"},
		{"not full", "KV cache", reported{}, event.MeasuredValue(.95), Watch, "", ""},
	} {
		e := calm()
		c.served.add(e)
		e.KV = c.kv
		v, ok := judged(e)[c.topic]
		if ok != (c.text != "") || ok && (v.Severity != c.severity || !strings.Contains(v.Text, c.text) || !strings.Contains(v.Try, c.try)) {
			t.Errorf("%s: %+v, want severity %d, %q and to try %q", c.name, v, c.severity, c.text, c.try)
		}
	}
}

// TestServedCause checks that what took the time of a server's requests qualifies its verdicts: no praise, and no remedy of
// another cause.
func TestServedCause(t *testing.T) {
	for topic, s := range map[string]reported{
		"decode":     {Served: Served{Speed: event.DerivedValue(48)}},
		"slow":       {Served: Served{Speed: event.DerivedValue(4)}},
		"TTFT":       {Target: 200 * time.Millisecond, TTFT: metric.Distribution{Count: 5, Mean: 3e8, P50: ms(201), P99: ms(900)}, Dominant: "prompt", DomShare: .8},
		"token gaps": {ITL: metric.Distribution{Count: 100, P50: ms(10), P99: ms(50)}},
	} {
		e := calm()
		s.add(e)
		e.Losses.Observed, e.Losses.N[OtherProcesses], e.Losses.NS[OtherProcesses] = 10e9, 8, 8e9
		e.DecodeLosses = e.Losses
		for _, v := range judged(e) {
			if v.Severity == Good || v.Try != "" && v.Try != Causes[OtherProcesses].Remedy {
				t.Errorf("%s: %+v", topic, v)
			}
		}
	}
}

// TestServedRulesAreForServers checks that these rules do not fire for engines with per-request metrics.
func TestServedRulesAreForServers(t *testing.T) {
	e := calm()
	e.KV, e.ITL = event.MeasuredValue(.96), gaps(100, float64(time.Millisecond), milli, 9*milli)
	for topic, v := range judged(e) {
		if strings.Contains(v.Text, "will have to wait") || strings.HasPrefix(v.Text, "ITL") {
			t.Errorf("%s: %q", topic, v.Text)
		}
	}
}
