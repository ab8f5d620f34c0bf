package latency

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// histogramNames are the display names of histograms of servers; others keep the name of the engine.
var histogramNames = func() map[string]string {
	names := map[string]string{event.HistogramPerToken: "per token"}
	for i := range store.Latencies {
		if row := &store.Latencies[i]; row.Server != "" {
			names[row.Server] = row.Name
		}
	}
	return names
}()

// HistogramName returns the display name of a histogram of a server.
func HistogramName(name string) string {
	if known, ok := histogramNames[name]; ok {
		return known
	}
	return sanitize.Line(name)
}

// distribution is a row of the table of latencies.
type distribution struct {
	name string
	metric.Distribution
}

// distributions returns the latencies over a window that the engine has: those of the catalogue, and what a server counts
// besides. before is true if nothing was counted since llmtop attached to a server: they are what it had counted until then.
func distributions(s *store.Snapshot, w metric.Window) (rows []distribution, before bool) {
	counted := false
	add := func(name string, d, session metric.Distribution) {
		if d.Origin != event.NotReported {
			rows = append(rows, distribution{name, d})
			counted = counted || session.Count > 0
		}
	}
	for id := range store.NumLatencies {
		row, session := id.Row(), s.Distribution(id, metric.Session)
		name := row.Title
		if row.Reason && session.Count == 0 {
			continue
		}
		if id == store.STIL && session.Count == 0 && !s.Engine.Caps.Has(event.CapQueue) && s.Counts.Finished > 0 {
			continue // the engine does not say when it starts a request
		}
		if s.Aggregates.Histogram(row.Server) != nil && s.Latency.Of[id][metric.Session].Count == 0 {
			name = row.Name // of warm and cold requests
		}
		add(name, s.Distribution(id, w), session)
	}
	for i := range s.Aggregates.Histograms {
		h := &s.Aggregates.Histograms[i]
		if !slices.ContainsFunc(store.Latencies[:], func(row store.LatencyRow) bool { return row.Server == h.Name }) {
			add(HistogramName(h.Name), h.Summary(w), h.Summary(metric.Session))
		}
	}
	if earlier := earlierTimes(&s.Aggregates); !counted && len(earlier) > 0 {
		return earlier, true
	}
	return rows, false
}

// earlierTimes returns what the engine had counted before llmtop attached.
func earlierTimes(r *store.Aggregates) (out []distribution) {
	if r.Earlier == nil {
		return nil
	}
	for i := range r.Earlier.Histograms {
		h := &r.Earlier.Histograms[i]
		var b metric.Buckets
		b.Add(h)
		out = append(out, distribution{HistogramName(h.Name), b.Summary()})
	}
	return out
}

// The columns of the table of latencies, and those that a narrow one has.
var (
	statistics = [...]struct {
		head string
		of   func(*metric.Distribution) string
	}{
		{"p50", func(d *metric.Distribution) string { return metric.QuantileOf(d.P50) }},
		{"p90", func(d *metric.Distribution) string { return metric.QuantileOf(d.P90) }},
		{"p95", func(d *metric.Distribution) string { return metric.QuantileOf(d.P95) }},
		{"p99", func(d *metric.Distribution) string { return metric.QuantileOf(d.P99) }},
		{"max", func(d *metric.Distribution) string { return metric.QuantileOf(d.Max) }},
		{"mean", func(d *metric.Distribution) string { return metric.Duration(int64(d.Mean)) }},
		{"samples", func(d *metric.Distribution) string { return metric.Count(float64(d.Count)) }},
	}
	narrow = [...][]int{{}, {0}, {0, 5}, {0, 3, 5}}
)

const maxStatistic, meanStatistic, samplesStatistic = 4, 5, 6

// percentileTable lists the latencies over the selected window and returns the rows used, 0 if the engine has none.
func percentileTable(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	rows, before := distributions(s, f.Window)
	if len(rows) == 0 {
		return 0
	}
	const names, col = 10, 10
	shown, room := []int{0, 1, 2, 3, 4, 5, 6}, max(a.W-names, 0)/col
	counted := len(s.Aggregates.Histograms) > 0
	if counted && !slices.ContainsFunc(rows, func(r distribution) bool { return r.Max.Edge != metric.NoQuantile }) {
		shown = slices.Delete(shown, maxStatistic, maxStatistic+1)
	}
	if room < len(narrow) {
		shown = narrow[room]
	}
	if counted && !buckets(s) {
		shown = []int{meanStatistic, samplesStatistic}
	}
	shown = shown[:min(len(shown), room)]
	if before {
		a.Text(0, 0, pane.Heading, "before attach")
	}
	for x, k := range shown {
		a.Right(names+(x+1)*col, 0, pane.Heading, statistics[k].head)
	}
	for y := range rows[:min(len(rows), max(a.H-1, 0))] {
		r := &rows[y]
		a.Elide(0, 1+y, names+1, pane.Dim, r.name, f.Skin.Glyphs.Ellipsis)
		if r.Count == 0 {
			a.Right(names+col, 1+y, pane.Dim, "-")
			continue
		}
		for x, k := range shown {
			st := pane.Data
			if k == samplesStatistic {
				st = pane.Plain
			}
			a.Right(names+(x+1)*col, 1+y, st, statistics[k].of(&r.Distribution))
		}
	}
	return 1 + min(len(rows), max(a.H-1, 0))
}

// buckets reports whether a server counts latencies in buckets, not their sum alone.
func buckets(s *store.Snapshot) bool {
	return slices.ContainsFunc(s.Aggregates.Histograms, func(h store.WindowedHistogram) bool { return h.Bounds() != nil })
}

// bucketNote explains the percentiles of servers below the table, and returns the rows used.
func bucketNote(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	if !buckets(s) {
		return 0
	}
	for i, words := range [...]string{
		"engine histograms: means are exact, percentiles interpolated within buckets;",
		"< and > mark the outermost buckets, which have only one bound",
	} {
		a.Elide(0, 1+i, a.W, pane.Dim, words, f.Skin.Glyphs.Ellipsis)
	}
	return 2
}
