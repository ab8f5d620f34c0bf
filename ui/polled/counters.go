package polled

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// lossCounters are the counters of the trace receiver that should stay 0, with their descriptions.
var lossCounters = []struct{ name, one, many string }{
	{"exports_refused", "export was refused", "exports were refused"},
	{"spans_rejected", "span was rejected", "spans were rejected"},
	{"spans_late", "span arrived too late", "spans arrived too late"},
	{"spans_dropped", "span was dropped: the rest of its trace did not arrive", "spans were dropped: the rest of their traces did not arrive"},
}

// DrawCounters lists the engine's own counters from row y on and returns the next free row.
func DrawCounters(a grid.Area, y int, s *store.Snapshot) int {
	if s.Counters == nil {
		return y
	}
	names, st := "", pane.Good
	for _, v := range s.Counters.Values {
		names += ", " + strings.ReplaceAll(sanitize.Line(v.Name), "_", " ") + " " + metric.Count(v.Value)
		if v.Value > 0 && slices.ContainsFunc(lossCounters, func(l struct{ name, one, many string }) bool { return l.name == v.Name }) {
			st = pane.Watch
		}
	}
	return labelledNames(a, y, st, "counters", names)
}

// TraceLossWarnings describes received traces that are incomplete; nil if none is.
func TraceLossWarnings(s *store.Snapshot) []string {
	if s.Counters == nil {
		return nil
	}
	words := ""
	for _, l := range lossCounters {
		n := s.Counters.Get(l.name)
		switch {
		case !n.OK() || n.V <= 0:
		case n.V == 1:
			words += ", 1 " + l.one
		default:
			words += ", " + metric.Count(n.V) + " " + l.many
		}
	}
	if words == "" {
		return nil
	}
	return []string{"some received traces are incomplete: " + words[2:] + "; see the log for causes"}
}

// HasAggregates reports whether an engine reports aggregate metrics or counters.
func HasAggregates(s *store.Snapshot) bool {
	return s.Reported() || s.Counters != nil && s.Engine.Caps.Has(event.CapCounters)
}
