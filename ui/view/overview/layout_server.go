package overview

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/latency"
)

// serverLayout returns the overview of a server with aggregate metrics only: instead of text, tokens and usually router
// picks it shows the load over time. Panes without data are omitted.
func serverLayout(s *store.Snapshot, w int) Layout {
	middle := layoutRow{panes: []ID{Queue, Throughput}, parts: []int{2, 1}, weight: 6}
	last := layoutRow{panes: []ID{Insights}, parts: []int{1}, weight: 4}
	if s.Experts != nil {
		middle.panes[0] = Experts
		last = layoutRow{panes: []ID{Queue, Insights}, parts: []int{1, 1}, weight: 5}
	}
	if w < 100 {
		middle.parts = []int{1, 1}
	}
	switch {
	case !s.Host.Sampled:
	case w < 100:
		last.panes, last.parts = append(last.panes, Machine), append(last.parts, 1)
	default:
		middle.panes, middle.parts = append(middle.panes, Machine), append(middle.parts, 1)
	}
	first := layoutRow{panes: []ID{TTFT, ITL}, parts: []int{1, 1}, weight: 6}
	if latency.HasTrends(s) {
		first.weight, last.weight = 8, last.weight-1
	}
	return Layout{rows: []layoutRow{first, middle, last}}
}
