package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// serverLayout returns the overview of a server with aggregate metrics only: instead of text, tokens and usually router
// picks it shows the load over time. Panes without data are omitted.
func serverLayout(s *store.Snapshot, w int) Layout {
	middle := layoutRow{panes: []overview.ID{overview.Queue, overview.Throughput}, parts: []int{2, 1}, weight: 6}
	last := layoutRow{panes: []overview.ID{overview.Insights}, parts: []int{1}, weight: 4}
	if s.Experts != nil {
		middle.panes[0] = overview.Experts
		last = layoutRow{panes: []overview.ID{overview.Queue, overview.Insights}, parts: []int{1, 1}, weight: 5}
	}
	if w < 100 {
		middle.parts = []int{1, 1}
	}
	switch {
	case !s.Host.Sampled:
	case w < 100:
		last.panes, last.parts = append(last.panes, overview.Machine), append(last.parts, 1)
	default:
		middle.panes, middle.parts = append(middle.panes, overview.Machine), append(middle.parts, 1)
	}
	first := layoutRow{panes: []overview.ID{overview.TTFT, overview.ITL}, parts: []int{1, 1}, weight: 6}
	return Layout{rows: []layoutRow{first, middle, last}}
}

// layout returns the layout that the user chose, otherwise the one for the kind of engine.
func (a *app) layout() Layout {
	if len(a.cfg.Layout.rows) == 0 && a.snap.AggregateOnly() {
		return serverLayout(a.snap, a.w)
	}
	return a.cfg.Layout
}
