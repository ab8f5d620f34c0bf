package verdict

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Served holds what a server reports of its requests, which are not measured, besides their latencies. The zero value is
// that of other engines.
type Served struct {
	Running, Waiting event.Reading
	Ranks            []event.Rank  // of several data-parallel ranks
	Preempted        event.Reading // requests since the previous poll
	Speed            event.Reading // tokens/s of one request
	SpeedEvidence    string        // how Speed was measured; "": unknown
}

// servedTTFT: "TTFT p99 690 ms is over the target of 200 ms (p50 196 ms): 84 % of the mean is prompt". It judges only
// what holds wherever in its bucket a percentile lies.
func servedTTFT(e *Evidence) (Verdict, bool) {
	t := &e.Warm
	if t.Origin != event.Reported || t.Count < ServedRequests || t.P50.Edge == metric.NoQuantile || !e.Given {
		return Verdict{}, false
	}
	limit := int64(e.Target)
	target := metric.Duration(limit)
	p50, p99 := metric.QuantileOf(t.P50), metric.QuantileOf(t.P99)
	mostly := ""
	if e.Dominant != "" {
		mostly = fmt.Sprintf(": %s of the mean is %s", metric.Percent(e.DomShare), e.Dominant)
	}
	v := Verdict{Topic: "TTFT", Evidence: fmt.Sprintf("%s requests in the last minute, reported by the engine: mean %s",
		metric.Count(float64(t.Count)), metric.Duration(int64(t.Mean)))}
	switch {
	case t.P50.Over(limit):
		v.Severity, v.Degrades = Bad, true
		v.Text = fmt.Sprintf("TTFT p50 %s is over the target of %s (p99 %s)%s", p50, target, p99, mostly)
	case t.P99.Over(limit):
		v.Severity, v.Degrades = Watch, true
		v.Text = fmt.Sprintf("TTFT p99 %s is over the target of %s (p50 %s)%s", p99, target, p50, mostly)
	case t.P99.AtMost(limit):
		v.Severity = Good
		v.Text = fmt.Sprintf("TTFT p99 %s, target %s (p50 %s)%s", p99, target, p50, mostly)
		return v, true
	default: // the target lies inside the percentile's bucket
		v.Severity = Info
		v.Text = fmt.Sprintf("TTFT p99 is %s: inconclusive for the target of %s%s", t.P99.Range(), target, mostly)
		return v, true
	}
	v.Try = servedRemedies[e.Dominant]
	v.qualify(&e.Losses)
	return v, true
}

// servedRemedies suggests an action for the largest component of a server's TTFT, by its name on the screen.
var servedRemedies = map[string]string{
	"queue":  "another replica, or more concurrent requests (--parallel) if the KV cache has space",
	"prompt": "prompts that share a prefix (it is computed once), chunked prefill, or another replica",
	"other":  "check tokenization and the frontend's CPU: neither queue nor prefill accounts for this time",
}

// queued: "3 requests waiting, 7 running: the KV cache is 96 % full", or which rank has them while others are free.
func queued(e *Evidence) (Verdict, bool) {
	s := &e.Served
	if !s.Waiting.OK() || s.Waiting.V < 1 {
		return Verdict{}, false
	}
	words := metric.Count(s.Waiting.V) + " requests waiting"
	if s.Waiting.V == 1 {
		words = "1 request waiting"
	}
	if s.Running.OK() {
		words += ", " + metric.Count(s.Running.V) + " running"
	}
	v := Verdict{Severity: Watch, Topic: "queue", Text: words, Degrades: true, Try: "check the server's limit of concurrent requests (--parallel), or add a replica"}
	hot, free := uneven(s.Ranks)
	switch {
	case free > 0:
		v.Text += fmt.Sprintf(": rank %s has %s of those waiting, %d of %d ranks none and at most half as many running", clean.Name(hot.Name), metric.Count(hot.Waiting.V), free, len(s.Ranks))
		v.Try = "distribute requests over ranks by their load, not in turn or by session"
	case e.KV.OK() && e.KV.V >= memoryFull:
		v.Text += fmt.Sprintf(": the KV cache is %s full", metric.Percent(e.KV.V))
		v.Try = moreKV + ", a shorter context, or another replica"
	case e.Slots > 0 && s.Running.OK() && s.Running.V >= float64(e.Slots):
		v.Text += fmt.Sprintf(": all %d slots busy", e.Slots)
		v.Try = "more slots (--parallel), or another replica"
	case e.KV.OK():
		v.Text += fmt.Sprintf("; the KV cache is %s full", metric.Percent(e.KV.V))
	}
	return v, true
}

// uneven returns the rank with the longest queue, and how many ranks could take its requests: they have no queue, and run
// at most half as many.
func uneven(ranks []event.Rank) (hot *event.Rank, free int) {
	for i := range ranks {
		if r := &ranks[i]; r.Waiting.OK() && r.Running.OK() && (hot == nil || r.Waiting.V > hot.Waiting.V) {
			hot = r
		}
	}
	if hot == nil || hot.Waiting.V < rankQueue {
		return hot, 0
	}
	for i := range ranks {
		if r := &ranks[i]; r.Waiting.OK() && r.Waiting.V == 0 && r.Running.OK() && r.Running.V <= hot.Running.V/2 {
			free++
		}
	}
	return hot, free
}

// preempted: "2 requests were preempted: the KV cache is too small"
func preempted(e *Evidence) (Verdict, bool) {
	s := &e.Served
	if !s.Preempted.OK() || s.Preempted.V < 1 {
		return Verdict{}, false
	}
	words := metric.Count(s.Preempted.V) + " requests were"
	if s.Preempted.V == 1 {
		words = "1 request was"
	}
	return Verdict{
		Severity: Watch, Topic: "preemptions", Degrades: true, Text: words + " preempted: the KV cache is too small",
		Evidence: "their KV is discarded or swapped out, and their token gaps grow",
		Try:      "fewer concurrent requests, " + moreKV + ", or another replica",
	}, true
}

// servedTail: "ITL p99 88.9 ms is at least 3.0x p50 19.4 ms in the last minute (limit 3x)". The factor is that of the
// buckets' bounds.
func servedTail(e *Evidence) (Verdict, bool) {
	t := &e.ITL
	if t.Origin != event.Reported || t.Count < tailSamples || t.P50.Edge == metric.NoQuantile || t.P50.High <= 0 {
		return Verdict{}, false
	}
	ratio := float64(t.P99.Low) / float64(t.P50.High)
	if ratio < tailFactor {
		return Verdict{}, false
	}
	v := Verdict{
		Severity: Watch, Topic: "token gaps", Degrades: true,
		Text: fmt.Sprintf("ITL p99 %s is at least %.1fx p50 %s in the last minute (limit %.0fx)",
			metric.QuantileOf(t.P99), ratio, metric.QuantileOf(t.P50), tailFactor),
		Evidence: fmt.Sprintf("%s gaps, reported by the engine", metric.Count(float64(t.Count))),
		Try:      smallerChunks + ": long prompts delay requests that decode",
	}
	v.qualify(&e.DecodeLosses)
	return v, true
}

// servedSpeed is decodeSpeed for a server.
func servedSpeed(e *Evidence) (Verdict, bool) {
	s := &e.Served
	if !s.Speed.OK() || s.Speed.V <= 0 {
		return Verdict{}, false
	}
	v := judgeSpeed(s.Speed.V, e, s.SpeedEvidence)
	v.qualify(&e.DecodeLosses)
	return v, true
}
