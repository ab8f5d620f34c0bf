package engines

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view/latency"
)

// ofRequests are the metrics that llmtop measures itself where it sees each request and token.
var ofRequests = []string{
	"decode/s", "finished", "failed", latency.HistogramName(event.HistogramTTFT), latency.HistogramName(event.HistogramITL),
	latency.HistogramName(event.HistogramTPOT), latency.HistogramName(event.HistogramE2EL),
}

// origins lists the metrics of an engine with aggregate metrics by their origin, the most important first, each preceded by
// ", ".
func origins(s *store.Snapshot) map[event.Origin]string {
	names := make(map[event.Origin]string)
	add := func(name string, from event.Origin) {
		if from == event.NotReported && s.Engine.Caps.Has(event.CapTokens) && slices.Contains(ofRequests, name) {
			from = event.Measured // by llmtop, of the requests themselves
		}
		names[from] += ", " + name
	}
	r := &s.Aggregates
	for _, o := range []struct {
		name string
		r    event.Reading
	}{
		{"running", r.Running},
		{"waiting", r.Waiting},
		{"decode/s", r.Decode},
		{"prefill/s", r.Prefill},
		{"KV usage", r.KVUsage},
		{"KV cells", r.KVTotal},
		{"cache hits", r.CacheHits},
		{"finished", r.Finished},
		{"failed", r.Failed},
	} {
		add(o.name, o.r.Origin)
	}
	for _, name := range []string{
		event.HistogramTTFT, event.HistogramITL, event.HistogramTPOT, event.HistogramE2EL, event.HistogramQueue, event.HistogramPrefill, event.HistogramDecode,
	} {
		from := event.NotReported
		if r.Histogram(name) != nil {
			from = event.Reported
		} else if name == event.HistogramTPOT && slices.ContainsFunc(s.Requests, func(r *store.Request) bool { return r.Polled }) {
			from = event.Derived
		}
		add(latency.HistogramName(name), from)
	}
	slots := event.NotReported
	if len(r.Slots) > 0 {
		slots = event.Reported
	}
	add("slots", slots)
	for i := range r.Numbers {
		if n := &r.Numbers[i]; n.Kind != store.CurrentValue && n.Name != event.RatioCacheHits {
			name, _ := metric.Named(sanitize.Line(n.Name))
			add(name, n.Last.Origin)
		}
	}
	for _, n := range r.More {
		name, _ := metric.Named(sanitize.Line(n.Name))
		add(name, n.Origin)
	}
	return names
}

// drawOrigins lists the metrics of an engine grouped by origin, then its endpoints, and returns the next free row.
func drawOrigins(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	all := origins(s)
	y := 0
	for _, group := range []struct {
		from event.Origin
		word string
		st   grid.Style
	}{
		{event.Measured, "measured", pane.Good},
		{event.Reported, "reported", pane.Good},
		{event.Derived, "derived", pane.Good},
		{event.NotYet, "not yet", pane.Dim},
		{event.NotReported, "not reported", pane.Dim},
	} {
		y = labelledNames(a, y, group.st, group.word, all[group.from])
	}
	y = labelledNames(a, y, pane.Good, "read from", endpointNames(s, true))
	return labelledNames(a, y, pane.Dim, "not read", endpointNames(s, false))
}

// drawCounters lists the engine's own counters from row y on and returns the next free row.
func drawCounters(a grid.Area, y int, s *store.Snapshot) int {
	if s.Counters == nil {
		return y
	}
	names, st := "", pane.Good
	for _, v := range s.Counters.Values {
		names += ", " + strings.ReplaceAll(sanitize.Line(v.Name), "_", " ") + " " + metric.Count(v.Value)
		if v.Value > 0 && store.Loses(v.Name) {
			st = pane.Watch
		}
	}
	return labelledNames(a, y, st, "counters", names)
}

// labelledNames writes a label and a list of names, each preceded by ", ", in as many lines as needed, and returns the
// next free row.
func labelledNames(a grid.Area, y int, st grid.Style, word, names string) int {
	if names == "" || y >= a.H {
		return y
	}
	a.Text(0, y, st, word)
	return min(a.Wrapped(14, y, pane.Plain, names[2:]), a.H)
}

// endpointNames lists the endpoints of an engine, each preceded by ", ": those in use, or the others with the reason.
func endpointNames(s *store.Snapshot, read bool) (names string) {
	for _, v := range s.Aggregates.Endpoints {
		switch {
		case v.Reason == "" && read:
			names += ", " + sanitize.Line(v.Name)
		case v.Reason != "" && !read:
			names += ", " + sanitize.Line(v.Name) + " (" + sanitize.Line(v.Reason) + ")"
		}
	}
	return names
}
