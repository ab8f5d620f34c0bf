package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// lossCounters are the counters of sources that should stay 0, with their descriptions: of the trace receiver, and of the
// tap.
var lossCounters = [2][]lossCounter{
	{
		{"exports_refused", "export was refused", "exports were refused"},
		{"spans_rejected", "span was rejected", "spans were rejected"},
		{"spans_late", "span arrived too late", "spans arrived too late"},
		{"spans_dropped", "span was dropped: the rest of its trace did not arrive", "spans were dropped: the rest of their traces did not arrive"},
	},
	{
		{"packets_dropped", "packet was dropped by the kernel", "packets were dropped by the kernel"},
		{"packets_truncated", "packet was captured in part (tcpdump -s 0)", "packets were captured in part (tcpdump -s 0)"},
		{"packets_malformed", "packet was malformed", "packets were malformed"},
		{"packets_of_unknown_link", "packet of an unknown link type", "packets of unknown link types"},
		{"ip_fragments", "IP fragment", "IP fragments"},
		{"stream_gaps", "gap in a connection", "gaps in connections"},
		{"connections_given_up", "connection was given up", "connections were given up"},
		{"clock_set", "change of the clock", "changes of the clock"},
		{"capture_cut", "end of the capture is cut off", "ends of the capture are cut off"},
	},
}

// lossCounter is a counter of a source that should stay 0.
type lossCounter struct{ name, one, many string }

// Loses reports whether a counter is one of a source that counts what it lost.
func Loses(name string) bool {
	return slices.ContainsFunc(slices.Concat(lossCounters[:]...), func(l lossCounter) bool { return l.name == name })
}

// SourceLosses describes what sources lost; nil if nothing.
func SourceLosses(s *Snapshot) (out []string) {
	if s.Counters == nil {
		return nil
	}
	for i, says := range [...][2]string{
		{"some received traces are incomplete: ", "; see the log for causes"}, {"the capture is incomplete: ", "; numbers that they may make wrong are absent"},
	} {
		words := ""
		for _, l := range lossCounters[i] {
			n := s.Counters.Get(l.name)
			switch {
			case !n.OK() || n.V <= 0:
			case n.V == 1:
				words += ", 1 " + l.one
			default:
				words += ", " + metric.Count(n.V) + " " + l.many
			}
		}
		if words != "" {
			out = append(out, says[0]+words[2:]+says[1])
		}
	}
	return out
}
