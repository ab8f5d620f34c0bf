package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/panes"
)

// serverLayout is the overview of a server that tells of itself in sum: there is no text to read and no single token, and mostly no router's
// pick, but how its load went. Panes of which nothing can be known are left out.
func serverLayout(s *store.Snapshot, w int) Layout {
	middle := layoutRow{panes: []panes.ID{panes.Queue, panes.Throughput}, parts: []int{2, 1}, weight: 6}
	last := layoutRow{panes: []panes.ID{panes.Know}, parts: []int{1}, weight: 4}
	if s.Experts != nil {
		middle.panes[0] = panes.Experts
		last = layoutRow{panes: []panes.ID{panes.Queue, panes.Know}, parts: []int{1, 1}, weight: 5}
	}
	if w < 100 {
		middle.parts = []int{1, 1}
	}
	switch {
	case !s.Host.Known:
	case w < 100:
		last.panes, last.parts = append(last.panes, panes.Machine), append(last.parts, 1)
	default:
		middle.panes, middle.parts = append(middle.panes, panes.Machine), append(middle.parts, 1)
	}
	first := layoutRow{panes: []panes.ID{panes.TTFT, panes.TPOT}, parts: []int{1, 1}, weight: 6}
	return Layout{rows: []layoutRow{first, middle, last}}
}

// layout is the one that the user wants, or else the one that suits the engine.
func (a *app) layout() Layout {
	if len(a.cfg.Layout.rows) == 0 && a.snap.OnlySums() {
		return serverLayout(a.snap, a.w)
	}
	return a.cfg.Layout
}
