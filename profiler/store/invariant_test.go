package store

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// checkRequest returns an error if a request breaks an invariant: nothing is negative or infinite, parts add up, bounds
// hold.
func checkRequest(r *Request) error {
	for name, x := range map[string]event.Reading{
		"TTFT": r.TTFT, "STIL": r.STIL, "prefill": r.Prefill, "decode": r.Decode, "E2EL": r.E2EL, "TPOT": r.TPOT,
		"prefill rate": r.PrefillRate, "decode rate": r.DecodeRate, "TPS": r.TPS, "overall": r.Overall, "paced": r.Paced,
	} {
		if x.Origin >= event.Measured && (x.V < 0 || !x.OK()) {
			return fmt.Errorf("request %d: %s is %v", r.ID, name, x.V)
		}
	}
	if r.E2EL.OK() && r.Decode.OK() && math.Abs(r.E2EL.V-r.TTFT.V-r.Decode.V) > 2e-9+1e-9*r.E2EL.V {
		return fmt.Errorf("request %d: E2EL %v is not TTFT %v + decode time %v", r.ID, r.E2EL.V, r.TTFT.V, r.Decode.V)
	}
	var sum time.Duration
	for _, p := range r.Parts {
		if sum += p.Dur; p.Dur < 0 || p.Share < 0 || p.Share > 1+1e-9 {
			return fmt.Errorf("request %d: part %+v", r.ID, p)
		}
		if p.Stage == event.StageQueue && r.STIL != seconds(int64(p.Dur)) && !r.Retrospective {
			return fmt.Errorf("request %d: queue time %v, but the part of TTFT is %v", r.ID, r.STIL, p.Dur)
		}
	}
	if r.TTFT.OK() && (len(r.Parts) == 0 || r.Parts[len(r.Parts)-1].Stage != event.StageNone || math.Abs(sum.Seconds()-r.TTFT.V) > 1e-9+1e-9*r.TTFT.V) {
		return fmt.Errorf("request %d: parts %+v add up to %v, TTFT is %v s", r.ID, r.Parts, sum, r.TTFT.V)
	}
	for _, gap := range r.Gaps {
		if gap < 0 {
			return fmt.Errorf("request %d: a gap of %d ns", r.ID, gap)
		}
	}
	if len(r.Gaps) > MaxGaps || len(r.Tokens) > MaxTokens || len(r.Text) > MaxText || len(r.Stalls) > MaxStalls || len(r.Layers) > MaxLayers {
		return fmt.Errorf("request %d exceeds a bound: %d gaps, %d tokens, %d bytes, %d stalls, %d layers",
			r.ID, len(r.Gaps), len(r.Tokens), len(r.Text), len(r.Stalls), len(r.Layers))
	}
	return checkSummary(r.ITL)
}

// checkSummary returns an error if the statistics of a distribution are inconsistent.
func checkSummary(s metric.Summary) error {
	if s.Count > 0 && (s.Min < 0 || s.Min > s.P50 || s.P50 > s.P90 || s.P90 > s.P95 || s.P95 > s.P99 || s.P99 > s.Max || s.Mean < 0 || math.IsNaN(s.StdDev)) {
		return fmt.Errorf("inconsistent distribution: %+v", s)
	}
	return nil
}

// checkSnapshot returns an error if a snapshot breaks an invariant.
func checkSnapshot(s *Snapshot) error {
	for _, r := range s.Requests {
		if err := checkRequest(r); err != nil {
			return err
		}
	}
	l := &s.Latency
	for id := range NumLatencies {
		windows := l.Of[id]
		for w, sum := range windows {
			if err := checkSummary(sum); err != nil {
				return err
			}
			if sum.Count > windows[metric.Session].Count {
				return fmt.Errorf("%v holds %d values, the session %d", metric.Window(w), sum.Count, windows[metric.Session].Count)
			}
		}
	}
	if err := checkCounted(s); err != nil {
		return err
	}
	t := &s.Throughput
	for name, x := range map[string]event.Reading{
		"prefill": t.Prefill, "decode": t.Decode, "TTPS": t.TTPS, "session TTPS": t.SessionTTPS, "busy": t.BusyShare,
		"bandwidth": t.Bandwidth, "goodput": l.Goodput, "KV usage": s.KV.Usage,
	} {
		if x.Origin >= event.Measured && (x.V < 0 || !x.OK()) {
			return fmt.Errorf("%s is %v", name, x.V)
		}
	}
	if t.BusyShare.OK() && t.BusyShare.V > 1 {
		return fmt.Errorf("busy for %v of the time", t.BusyShare.V)
	}
	for _, span := range s.Load {
		if span.Dur() < 0 {
			return fmt.Errorf("a load stage of %v", span.Dur())
		}
	}
	if len(s.Requests) > MaxOpen+MaxRequests || len(s.Log) > MaxLog || len(l.Stalls) > MaxStalls || len(l.Series) > SeriesLen || t.Series.Len() > SeriesLen {
		return fmt.Errorf("a bound is exceeded: %d requests, %d lines, %d stalls, %d and %d points",
			len(s.Requests), len(s.Log), len(l.Stalls), len(l.Series), t.Series.Len())
	}
	return nil
}

// checkCounted returns an error if the requests that count in a distribution of TTFT are not as many as its values,
// unless the clock went back.
func checkCounted(s *Snapshot) error {
	if slices.ContainsFunc(s.Requests, func(r *Request) bool { return r.Counted > s.Now }) {
		return nil
	}
	for w := range metric.NumWindows {
		for cold, sum := range map[bool]*metric.Summary{false: &s.Latency.Of[TTFT][w], true: &s.Latency.Of[ColdTTFT][w]} {
			n := uint64(0)
			for range s.CountedIn(w, cold) {
				n++
			}
			if n > sum.Count || n < sum.Count && s.Counts.OmittedRequests+s.Counts.Unmeasured == 0 {
				return fmt.Errorf("TTFT (cold: %v) has %d values in the %v, of %d requests", cold, sum.Count, w, n)
			}
		}
	}
	return nil
}
