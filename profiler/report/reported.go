package report

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Reported is what a server tells of itself in sum: where it stood last, and the histograms of its times over the session.
type Reported struct {
	Numbers []ReportedNumber `json:"numbers"` // those that it tells
	Missing []string         `json:"missing"` // names of those that it does not tell
	Times   []ReportedTimes  `json:"times"`
}

// ReportedNumber is one of them, and whose word it is: "reported", the server's own, or "derived", made of two looks at its counters.
type ReportedNumber struct {
	Name   string `json:"name"` // ends in its unit; otherwise it is a count
	Value  Number `json:"value"`
	Origin string `json:"origin"`
}

// ReportedTimes is one of its histograms over the session, in s. Bounds are the upper ends of the buckets; the last one has none.
type ReportedTimes struct {
	Name   string    `json:"name"`
	Count  uint64    `json:"count"`
	Mean   Number    `json:"mean"`     // exact; null where none came
	Bounds []float64 `json:"bounds_s"` // null: the buckets are not known, or have changed
	Counts []uint64  `json:"counts"`   // one more than Bounds
	sum    metric.BucketSummary
}

// reportedOf is what was reported, nil for an engine that tells of single requests.
func reportedOf(r *store.Reported) *Reported {
	if r == nil {
		return nil
	}
	out := &Reported{Numbers: []ReportedNumber{}, Missing: []string{}, Times: []ReportedTimes{}}
	all := []event.Number{
		{Name: "running", Reading: r.Running},
		{Name: "waiting", Reading: r.Waiting},
		{Name: "decode_tokens_per_s", Reading: r.Decode},
		{Name: "prefill_tokens_per_s", Reading: r.Prefill},
		{Name: "kv_usage_share", Reading: r.KVUsage},
		{Name: "kv_used_cells", Reading: r.KVUsed},
		{Name: "kv_total_cells", Reading: r.KVTotal},
		{Name: "cache_hits_share", Reading: r.CacheHits},
	}
	for _, n := range append(all, r.More...) {
		if !n.OK() {
			out.Missing = append(out.Missing, n.Name)
			continue
		}
		out.Numbers = append(out.Numbers, ReportedNumber{n.Name, Number(n.Reading), n.Origin.String()})
	}
	for i := range r.Spans {
		t := &r.Spans[i]
		row := ReportedTimes{Name: t.Name, sum: t.Windows[session], Counts: t.Counts}
		if row.Count = row.sum.Count; row.Count > 0 {
			row.Mean = nanos(int64(row.sum.Mean))
		}
		for _, ns := range t.Bounds {
			row.Bounds = append(row.Bounds, float64(ns)/1e9)
		}
		out.Times = append(out.Times, row)
	}
	return out
}

// reportedSections are the tables of both.
func (r *Report) reportedSections() []section {
	if r.Reported == nil {
		return nil
	}
	numbers := section{title: "What the server tells of itself", left: 1, header: []string{"", "last", "origin"}}
	for _, n := range r.Reported.Numbers {
		form := metric.Count
		switch {
		case strings.HasSuffix(n.Name, "_share"):
			form = metric.Percent
		case strings.HasSuffix(n.Name, "_bytes"):
			form = metric.Bytes
		case strings.HasSuffix(n.Name, "_per_s"):
			form = metric.Rate
		}
		numbers.rows = append(numbers.rows, []string{n.Name, form(n.Value.V), n.Origin})
	}
	if len(r.Reported.Missing) > 0 {
		numbers.words = []string{"Not told: " + strings.Join(r.Reported.Missing, ", ") + "."}
	}
	times := section{title: "Times as the server counts them, whole session", left: 1, header: []string{"", "samples", "mean", "p50", "p90", "p95", "p99"}}
	for _, t := range r.Reported.Times {
		times.rows = append(times.rows, []string{
			t.Name, metric.Count(float64(t.Count)), short(t.Mean, metric.Seconds),
			metric.QuantileOf(t.sum.P50), metric.QuantileOf(t.sum.P90), metric.QuantileOf(t.sum.P95), metric.QuantileOf(t.sum.P99),
		})
	}
	if len(times.rows) > 0 {
		times.words = []string{"Means are exact, percentiles interpolated within the server's buckets; < and > are bounds of which no more is known."}
	}
	return []section{numbers, times}
}
