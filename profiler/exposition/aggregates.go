package exposition

import (
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

const originAttr = "origin"

// Aggregate metrics of servers; the origin label is reported or derived.
var (
	reportedTimes = histogram("llmtop.reported.time", "s", "Durations since llmtop began to watch the engine: as the engine counts them, in its own buckets (reported), or from its slots (derived)",
		engineAttr, "time", originAttr)
	reportedCounts = counter("llmtop.reported.count", "{event}", "Counts of the engine since llmtop began to watch it",
		engineAttr, "number")
	reportedNumbers = gauge("llmtop.reported.number", "", "Latest values of the engine's aggregate metrics; a name without a unit is a count",
		engineAttr, "number", originAttr)
)

// maxNumbers is how many numbers of one engine are exported at most.
const maxNumbers = 128

// reportedCounts adds the totals of what the engine counts besides.
func (s *gathering) reportedCounts(r *store.Aggregates) {
	seen := make(map[string]bool)
	for i := range r.Numbers {
		n := &r.Numbers[i]
		if name := cleanLabel(n.Name); n.Kind == store.CountedTotal && !seen[name] && len(seen) < maxNumbers {
			seen[name] = true
			s.add(reportedCounts, n.Value.V, name)
		}
	}
}

// reached reports whether the engine is connected, or no connection is needed.
func reached(v *store.Snapshot) bool {
	link := v.Engine.Remote.Link
	return link == event.LinkNone || link == event.LinkConnected
}

// reportedNumbers adds the numbers of the latest report.
func (s *gathering) reportedNumbers(r *store.Aggregates) {
	seen := make(map[string]bool) // different names may be equal after cleaning
	for _, n := range r.NamedReadings() {
		if name := cleanLabel(n.Name); n.OK() && !seen[name] && len(seen) < maxNumbers {
			seen[name] = true
			s.add(reportedNumbers, n.V, name, n.Origin.String())
		}
	}
}

// genAITimes are the histograms of engines that OpenTelemetry's conventions name.
var genAITimes = func() map[string]*instrument {
	out := make(map[string]*instrument)
	for id := range store.NumLatencies {
		if row := id.Row(); row.GenAI {
			out[row.Server] = latencyMetrics[id]
		}
	}
	return out
}()

// histograms adds the histograms that the engine counts. Those that OpenTelemetry's conventions name are added under
// that name too, unless single requests are counted there. They hold all requests of the engine, so their operation is
// unknown.
func (s *gathering) histograms() {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.histograms)) {
		d := e.histograms[name]
		fits := len(d.bounds) <= s.buckets
		if fits {
			s.buckets -= len(d.bounds)
		}
		h := d.histogram(fits)
		s.metric(reportedTimes, []string{name, event.Reported.String()}).Histogram = h
		if i := genAITimes[name]; i != nil && !e.requestsSeen {
			s.metric(i, []string{unknown, e.labels.provider, e.labels.model}).Histogram = h
		}
	}
}
