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
	Parts   Parts            `json:"ttft_components_s"` // means; null where it tells none
}

// ReportedNumber is one of them, and whose word it is: "reported", the server's own, or "derived", made of two looks at its counters.
type ReportedNumber struct {
	Name   string `json:"name"` // ends in its unit; otherwise it is a count
	Value  Number `json:"value"`
	Origin string `json:"origin"`
}

// ReportedTimes is one of its histograms over the session, in s. Bounds are the upper ends of the buckets; the last one has none.
type ReportedTimes struct {
	Name   string         `json:"name"`
	Origin string         `json:"origin"`
	Count  uint64         `json:"count"`
	Mean   Number         `json:"mean"` // exact; null where none came
	P50    *BoundQuantile `json:"p50"`  // null where none came, or no buckets are known
	P90    *BoundQuantile `json:"p90"`
	P95    *BoundQuantile `json:"p95"`
	P99    *BoundQuantile `json:"p99"`
	Bounds []float64      `json:"bounds_s"` // null: the buckets are not known, or have changed
	Counts []uint64       `json:"counts"`   // one more than Bounds
}

// reportedOf is what was reported, nil for an engine that tells of single requests.
func reportedOf(r *store.Reported) *Reported {
	if r == nil {
		return nil
	}
	out := &Reported{Numbers: []ReportedNumber{}, Missing: []string{}, Times: []ReportedTimes{}}
	for _, n := range r.Numbers() {
		if !n.OK() {
			out.Missing = append(out.Missing, n.Name)
			continue
		}
		out.Numbers = append(out.Numbers, ReportedNumber{n.Name, Number(n.Reading), n.Origin.String()})
	}
	for i := range r.Spans {
		out.Times = append(out.Times, timesOf(&r.Spans[i]))
	}
	parts, _ := r.Parts(session)
	for _, p := range parts {
		out.Parts = append(out.Parts, Part{partName(p.Stage), nanos(int64(p.Dur))})
	}
	return out
}

func timesOf(t *store.Times) ReportedTimes {
	sum := &t.Windows[session]
	out := ReportedTimes{
		Name: t.Name, Origin: event.Reported.String(), Count: sum.Count, Counts: t.Counts,
		P50: boundQuantile(sum.P50), P90: boundQuantile(sum.P90), P95: boundQuantile(sum.P95), P99: boundQuantile(sum.P99),
	}
	if sum.Count > 0 {
		out.Mean = nanos(int64(sum.Mean))
	}
	for _, ns := range t.Bounds {
		out.Bounds = append(out.Bounds, float64(ns)/1e9)
	}
	return out
}

// form writes a number as the end of its name says.
func form(name string) func(float64) string {
	switch {
	case strings.HasSuffix(name, "_share"):
		return metric.Percent
	case strings.HasSuffix(name, "_bytes"):
		return metric.Bytes
	case strings.HasSuffix(name, "_per_s"):
		return metric.Rate
	case strings.HasSuffix(name, "_s"):
		return metric.Seconds
	}
	return metric.Count
}

// reportedSections are the tables of both.
func (r *Report) reportedSections() []section {
	if r.Reported == nil {
		return nil
	}
	numbers := section{title: "What the server tells of itself", left: 1, header: []string{"", "last", "origin"}}
	for _, n := range r.Reported.Numbers {
		numbers.rows = append(numbers.rows, []string{n.Name, form(n.Name)(n.Value.V), n.Origin})
	}
	if len(r.Reported.Missing) > 0 {
		numbers.words = []string{"Not told: " + strings.Join(r.Reported.Missing, ", ") + "."}
	}
	times := section{title: "Times as the server counts them, whole session", left: 1, header: append([]string{""}, timesHeader...)}
	for i := range r.Reported.Times {
		t := &r.Reported.Times[i]
		times.rows = append(times.rows, append([]string{t.Name}, t.cells()...))
	}
	if len(times.rows) > 0 {
		times.words = []string{timesWords}
	}
	return []section{numbers, times}
}

// timesHeader are the columns of ReportedTimes.cells.
var timesHeader = []string{"samples", "mean", "p50", "p90", "p95", "p99"}

const timesWords = "Means are exact, percentiles interpolated within the server's buckets; < and > are bounds of which no more is known."

// cells are the numbers of a histogram as text.
func (t *ReportedTimes) cells() []string {
	return []string{
		metric.Count(float64(t.Count)), short(t.Mean, metric.Seconds), t.P50.words(), t.P90.words(), t.P95.words(), t.P99.words(),
	}
}

// divided are the mean parts of the mean TTFT, nil of a server that counts no TTFT for them to be parts of.
func (r *Reported) divided() Parts {
	if r == nil || len(r.Parts) == 0 || r.Parts[len(r.Parts)-1].Name != partName(event.StageNone) {
		return nil
	}
	return r.Parts
}
