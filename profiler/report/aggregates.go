package report

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Aggregates holds the aggregate metrics of a server: its latest numbers, and its histograms over the session.
type Aggregates struct {
	Numbers    []ReportedNumber    `json:"numbers"` // reported ones
	Missing    []string            `json:"missing"` // names of numbers that it does not report
	Histograms []ReportedHistogram `json:"times"`
	Parts      Parts               `json:"ttft_components_s"` // means; null if it reports none
}

// ReportedNumber is one number with its origin: "reported" by the server, or "derived" from two polls of its counters.
type ReportedNumber struct {
	Name   string `json:"name"` // ends in its unit; without a unit it is a count
	Value  Number `json:"value"`
	Origin string `json:"origin"`
}

// ReportedHistogram is a histogram of a server over the session, in s. Bounds are the upper ends of the buckets; the
// last bucket has none.
type ReportedHistogram struct {
	Name   string         `json:"name"`
	Origin string         `json:"origin"`
	Count  uint64         `json:"count"`
	Mean   Number         `json:"mean"` // exact; null without samples
	P50    *BoundQuantile `json:"p50"`  // null without samples or buckets
	P90    *BoundQuantile `json:"p90"`
	P95    *BoundQuantile `json:"p95"`
	P99    *BoundQuantile `json:"p99"`
	Bounds []float64      `json:"bounds_s"` // null: no buckets, or they have changed
	Counts []uint64       `json:"counts"`   // one more than Bounds
}

// aggregates converts aggregate metrics; nil for an engine with per-request metrics.
func aggregates(r *store.Aggregates) *Aggregates {
	if r == nil {
		return nil
	}
	out := &Aggregates{Numbers: []ReportedNumber{}, Missing: []string{}, Histograms: []ReportedHistogram{}}
	for _, n := range r.NamedReadings() {
		if !n.OK() {
			out.Missing = append(out.Missing, n.Name)
			continue
		}
		out.Numbers = append(out.Numbers, ReportedNumber{n.Name, Number(n.Reading), n.Origin.String()})
	}
	for i := range r.Histograms {
		out.Histograms = append(out.Histograms, reportedHistogram(&r.Histograms[i]))
	}
	parts, _ := r.Parts(session)
	for _, p := range parts {
		out.Parts = append(out.Parts, Part{partName(p.Stage), nanos(int64(p.Dur))})
	}
	return out
}

// reportedHistogram converts a histogram to s.
func reportedHistogram(t *store.WindowedHistogram) ReportedHistogram {
	sum := &t.Windows[session]
	out := ReportedHistogram{
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

// formatterFor returns the format of a number by the unit at the end of its name.
func formatterFor(name string) func(float64) string {
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

// reportedSections returns the tables of numbers and histograms.
func reportedSections(r *Report) []section {
	if r.Reported == nil {
		return nil
	}
	numbers := section{title: "Aggregate metrics of the server", left: 1, header: []string{"", "last", "origin"}}
	for _, n := range r.Reported.Numbers {
		numbers.rows = append(numbers.rows, []string{n.Name, formatterFor(n.Name)(n.Value.V), n.Origin})
	}
	if len(r.Reported.Missing) > 0 {
		numbers.words = []string{"Not reported: " + strings.Join(r.Reported.Missing, ", ") + "."}
	}
	times := section{title: "Latency reported by the server, whole session", left: 1, header: append([]string{""}, histogramHeader...)}
	for i := range r.Reported.Histograms {
		t := &r.Reported.Histograms[i]
		times.rows = append(times.rows, append([]string{t.Name}, t.cells()...))
	}
	if len(times.rows) > 0 {
		times.words = []string{histogramNote}
	}
	return []section{numbers, times}
}

// histogramHeader are the columns of ReportedHistogram.cells.
var histogramHeader = []string{"samples", "mean", "p50", "p90", "p95", "p99"}

const histogramNote = "Means are exact, percentiles are interpolated within the server's buckets; < and > mark percentiles in the first and the last bucket."

// cells returns the numbers of a histogram as text.
func (t *ReportedHistogram) cells() []string {
	return []string{
		metric.Count(float64(t.Count)), short(t.Mean, metric.Seconds), t.P50.cell(), t.P90.cell(), t.P95.cell(), t.P99.cell(),
	}
}

// ttftParts returns the components of the mean TTFT, nil if the server has no TTFT histogram.
func (r *Aggregates) ttftParts() Parts {
	if r == nil || len(r.Parts) == 0 || r.Parts[len(r.Parts)-1].Name != partName(event.StageNone) {
		return nil
	}
	return r.Parts
}
