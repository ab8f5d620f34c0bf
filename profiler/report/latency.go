package report

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Latency is the distribution of a latency over the session: of the requests that llmtop measured, or as a server
// counts it in buckets, of whose percentiles no more is known than the buckets show.
type Latency struct {
	Name   string // member of reports if it was measured, or else as of an event.Histogram
	Origin string // measured, reported; "": reported before the session
	Distribution
	Edges  []float64 // upper ends of the buckets; the last bucket has none. Nil: no buckets, or they have changed
	Counts []uint64  // one more than Edges
}

// Distribution describes times in s. Percentiles of measured times are accurate to 1/64 of their value. Percentiles in
// the first or the last bucket of a server are absent: AtMost or Above has the edge, by the name of the percentile.
type Distribution struct {
	Count  uint64             `json:"count"`
	Mean   event.Reading      `json:"mean"`
	StdDev event.Reading      `json:"stddev"`
	Min    event.Reading      `json:"min"`
	P50    event.Reading      `json:"p50"`
	P90    event.Reading      `json:"p90"`
	P95    event.Reading      `json:"p95"`
	P99    event.Reading      `json:"p99"`
	Max    event.Reading      `json:"max"`
	AtMost map[string]float64 `json:"-"`
	Above  map[string]float64 `json:"-"`
}

// latencies returns the latencies of a session that llmtop measured.
func latencies(s *store.Snapshot) (out Latencies) {
	for id := range store.Latencies {
		if d := distribution(s.Latency.Of[id][session]); d != nil {
			out = append(out, Latency{Name: store.Latencies[id].JSON, Origin: event.Measured.String(), Distribution: *d})
		}
	}
	return out
}

// countedLatencies returns the latencies of a session that a server counts.
func countedLatencies(all []store.WindowedHistogram) []Latency {
	out := []Latency{}
	for _, h := range all {
		l := Latency{Name: h.Name, Origin: event.Reported.String(), Distribution: newDistribution(h.Summary(session))}
		bounds, counts := h.Session()
		for l.Counts = counts; len(l.Edges) < len(bounds); {
			l.Edges = append(l.Edges, float64(bounds[len(l.Edges)])/1e9)
		}
		out = append(out, l)
	}
	return out
}

// title returns the name of a latency for people: that of the catalogue if it was measured, or else that of servers.
func (l *Latency) title() string {
	if i := slices.IndexFunc(store.Latencies[:], func(row store.LatencyRow) bool { return row.JSON == l.Name }); i >= 0 {
		return store.Latencies[i].Name
	}
	return l.Name
}

// Latency returns the distribution of a latency: the measured one if there is one, or else that of the server; nil
// without values.
func (r *Report) Latency(id store.LatencyID) *Latency {
	row := id.Row()
	for _, from := range []struct {
		name string
		list []Latency
	}{{row.JSON, r.Latencies}, {row.Server, r.Reported.Latencies}} {
		if i := slices.IndexFunc(from.list, func(l Latency) bool { return l.Name == from.name && l.Count > 0 }); i >= 0 {
			return &from.list[i]
		}
	}
	return nil
}

// newDistribution converts a distribution to s.
func newDistribution(d metric.Distribution) Distribution {
	out := Distribution{Count: d.Count}
	if d.Count > 0 {
		out.Mean = event.DerivedValue(d.Mean / 1e9)
	}
	for _, p := range []struct {
		name string
		q    metric.Quantile
	}{{"p50", d.P50}, {"p90", d.P90}, {"p95", d.P95}, {"p99", d.P99}, {"max", d.Max}} {
		if p.q.Edge != metric.NoQuantile {
			out.setPercentile(p.name, float64(p.q.At)/1e9, boundName(p.q.Edge))
		}
	}
	return out
}

// setPercentile sets what percentile returns.
func (d *Distribution) setPercentile(name string, v float64, bound string) {
	edges := map[string]*map[string]float64{boundBelow: &d.AtMost, boundAbove: &d.Above}[bound]
	switch {
	case edges == nil:
		*d.exact(name) = event.DerivedValue(v)
	case *edges == nil:
		*edges = map[string]float64{name: v}
	default:
		(*edges)[name] = v
	}
}

// exact returns a percentile or the largest value by its name.
func (d *Distribution) exact(name string) *event.Reading {
	return map[string]*event.Reading{"p50": &d.P50, "p90": &d.P90, "p95": &d.P95, "p99": &d.P99, "max": &d.Max}[name]
}

// distribution converts a summary to s; nil if nothing was recorded. A single value has no standard deviation.
func distribution(s metric.Summary) *Distribution {
	if s.Count == 0 {
		return nil
	}
	d := newDistribution(s.Distribution())
	if d.Min = nanos(s.Min); s.Count > 1 {
		d.StdDev = event.DerivedValue(s.StdDev / 1e9)
	}
	return &d
}

// percentile returns a percentile or the largest value by its name, with its bound; "" if it is absent.
func (d *Distribution) percentile(name string) (v float64, bound string) {
	if v, ok := d.AtMost[name]; ok {
		return v, boundBelow
	}
	if v, ok := d.Above[name]; ok {
		return v, boundAbove
	}
	n := d.exact(name)
	if !n.OK() {
		return 0, ""
	}
	return n.V, boundWithin
}

// cells returns percentiles as text, "-" for absent ones.
func (d *Distribution) cells(names ...string) (out []string) {
	for _, name := range names {
		words := "-"
		if v, bound := d.percentile(name); bound != "" {
			words = bounded(metric.Seconds(v), bound)
		}
		out = append(out, words)
	}
	return out
}

// countedPercentiles are the percentiles of latencies that a server counts.
var countedPercentiles = [...]string{"p50", "p90", "p95", "p99"}

// countedHeader are the columns of countedCells.
var countedHeader = append([]string{"samples", "mean"}, countedPercentiles[:]...)

const countedNote = "Means are exact, percentiles are interpolated within the server's buckets; < and > mark percentiles in the first and the last bucket."

// countedCells returns what a server counts as text.
func (d *Distribution) countedCells() []string {
	return append([]string{metric.Count(float64(d.Count)), short(d.Mean, metric.Seconds)}, d.cells(countedPercentiles[:]...)...)
}

// countedSection returns a table of latencies that a server counts.
func countedSection(title string, all []Latency) section {
	s := section{title: title, left: 1, header: append([]string{""}, countedHeader...)}
	for i := range all {
		s.rows = append(s.rows, append([]string{all[i].title()}, all[i].countedCells()...))
	}
	return s
}

// latencySection returns the latencies of all requests of the session.
func latencySection(r *Report) section {
	s := section{title: "Latency", left: 1, header: []string{"", "samples", "mean", "stddev", "p50", "p90", "p95", "p99", "max"}}
	if r.Bench != nil {
		s.title += " of all requests of the session, including the warm-up"
	}
	for _, d := range r.Latencies {
		cells := []string{d.title(), fmt.Sprint(d.Count)}
		for _, n := range []struct {
			v     event.Reading
			share float64
		}{{d.Mean, 0}, {d.StdDev, 0}, {d.P50, 0}, {d.P90, 0.90}, {d.P95, 0.95}, {d.P99, 0.99}, {d.Max, 0}} {
			words := short(n.v, metric.Seconds)
			if tooFew(float64(d.Count), n.share) {
				words += "?"
			}
			cells = append(cells, words)
		}
		s.rows = append(s.rows, cells)
	}
	if len(s.rows) > 0 && r.Bench == nil {
		s.words = []string{"A ? marks a percentile of too few samples."}
	}
	for id := range store.Latencies {
		if why := r.Undistributed[store.Latencies[id].JSON]; why != "" {
			s.words = append(s.words, store.Latencies[id].Name+" of all requests: not reported, "+why+".")
		}
	}
	return s
}

// latencyCharts draws the latencies that are counted in buckets.
func latencyCharts(r *Report) (out []chart) {
	for _, id := range []store.LatencyID{store.TTFT, store.ITL, store.TPOT, store.E2EL} {
		for _, l := range r.Reported.Latencies {
			if l.Name == id.Row().Server && len(l.Edges) > 0 && len(l.Counts) == len(l.Edges)+1 {
				out = append(out, l.chart(id))
			}
		}
	}
	return out
}

// chart draws a bar per bucket, from the first to the last bucket with samples.
func (l *Latency) chart(id store.LatencyID) chart {
	c := chart{Title: id.Row().Name, Note: "requests per bucket, counted by the server", Width: chartWidth}
	if id == store.ITL {
		c.Note = "gaps per bucket, counted by the server"
	}
	most, first, last := uint64(0), len(l.Counts), -1
	for i, n := range l.Counts {
		if most = max(most, n); n > 0 {
			first, last = min(first, i), i
		}
	}
	for i := first; i <= last; i++ {
		c.bar(l.bucket(i), float64(l.Counts[i])/float64(most), metric.Count(float64(l.Counts[i])))
	}
	return c
}

// bucket returns the range of a bucket as text.
func (l *Latency) bucket(i int) string {
	switch {
	case i == 0:
		return "up to " + metric.Seconds(l.Edges[0])
	case i == len(l.Edges):
		return "above " + metric.Seconds(l.Edges[i-1])
	}
	return fmt.Sprintf("%s to %s", metric.Seconds(l.Edges[i-1]), metric.Seconds(l.Edges[i]))
}

// rows yields the rows of a latency that a server counts in the CSV of numbers.
func (l *Latency) rows(row func(name string, v float64, bound, origin string)) {
	row(l.Name+"_count", float64(l.Count), boundWithin, l.Origin)
	origin := event.Derived.String() // what llmtop computes from the buckets
	if l.Mean.OK() {
		row(l.Name+"_mean_s", l.Mean.V, boundWithin, origin)
	}
	for _, p := range countedPercentiles {
		if v, bound := l.percentile(p); bound != "" {
			row(l.Name+"_"+p+"_s", v, bound, origin)
		}
	}
}
