package panes

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// losing are the counters that should stay 0, with what they count in words: of the traces that servers send.
var losing = []struct{ name, one, many string }{
	{"exports_refused", "export was refused", "exports were refused"},
	{"spans_rejected", "span was rejected", "spans were rejected"},
	{"spans_late", "span came too late", "spans came too late"},
	{"spans_dropped", "span was given up: what belongs to it did not come", "spans were given up: what belongs to them did not come"},
}

// counterRow lists the counters that an engine keeps by itself, from row y on, and returns the next row.
func counterRow(a grid.Area, y int, s *store.Snapshot) int {
	if s.Counters == nil {
		return y
	}
	names, st := "", good
	for _, v := range s.Counters.Values {
		names += ", " + strings.ReplaceAll(sanitize.Line(v.Name), "_", " ") + " " + metric.Count(v.Value)
		if v.Value > 0 && slices.ContainsFunc(losing, func(l struct{ name, one, many string }) bool { return l.name == v.Name }) {
			st = watch
		}
	}
	return capabilities(a, y, st, "counters", names)
}

// lossNotes are what a receiver of traces was sent and has not taken, in words; nothing if it has taken all.
func lossNotes(s *store.Snapshot) []string {
	if s.Counters == nil {
		return nil
	}
	words := ""
	for _, l := range losing {
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
	return []string{"of the traces that were sent here not all are shown: " + words[2:] + "; the log says why"}
}

// tellsInSum reports whether an engine tells of itself in sum, or has counters to tell of.
func tellsInSum(s *store.Snapshot) bool {
	return s.Reported != nil || s.Counters != nil && s.Engine.Caps.Has(event.CapCounters)
}
