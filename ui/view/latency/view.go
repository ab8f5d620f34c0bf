// Package latency is the Latency view, with the panes of TTFT and ITL.
package latency

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view"
)

// View is the Latency view.
type View struct {
	view.Base
	Page  Page
	pages []Page // with data, of the last frame; nil before it

	program view.Program
	open    func(store.Stall)
	picked  *store.Stall // of the list of stalls; nil: the newest
}

// New makes the view of a program; open shows the late token of a stall.
func New(program view.Program, open func(store.Stall)) *View {
	return &View{program: program, open: open}
}

// Reset selects the newest stall.
func (v *View) Reset() { v.picked = nil }

// Selected returns the position of the selected stall among those of a snapshot, counted from the newest; the newest if it
// is no longer kept.
func (v *View) Selected(s *store.Snapshot) int {
	all := s.Latency.Stalls
	for i := len(all) - 1; v.picked != nil && i >= 0; i-- {
		if all[i].Request == v.picked.Request && all[i].Index == v.picked.Index {
			return len(all) - 1 - i
		}
	}
	return 0
}

// pick selects the stall n rows below the selected one.
func (v *View) pick(n int) {
	s := v.program.Snapshot()
	if all := s.Latency.Stalls; len(all) > 0 {
		v.picked = &all[len(all)-1-max(min(v.Selected(s)+n, len(all)-1), 0)]
	}
}

// OpenStall shows the selected stall.
func (v *View) OpenStall() {
	v.pick(0)
	v.open(*v.picked)
}

// Name implements view.View.
func (v *View) Name() string { return "Latency" }

// Missing implements view.View.
func (v *View) Missing(s *store.Snapshot) (why, advice string) {
	if s.CallsOnly() {
		return store.RequestsUnseen, ""
	}
	if rows, _ := distributions(s, metric.Session); len(rows)+len(s.Requests)+len(s.Aggregates.Slots) == 0 {
		return noLatency, measureThem(s)
	}
	return "", ""
}

// Draw implements view.View.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.pages = pagesOf(s)
	if !slices.Contains(v.pages, v.Page) {
		v.Page = PageAll
	}
	f.Windowed(a, s, func(s *store.Snapshot) { drawLatency(a, s, f, v.Page, v.after(1), v.Selected(s)) })
}

var allPages = []Page{PageAll, PageDistributions, PageOverTime, PagePrompt}

// pagesOf returns the pages that have data.
func pagesOf(s *store.Snapshot) []Page {
	switch {
	case Measured(s):
		return allPages
	case HasTrends(s):
		return []Page{PageAll, PageOverTime}
	}
	return []Page{PageAll}
}

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	return []view.Key{
		{Keys: []string{"tab"}, Show: "tab", Word: "page", Help: "switch pages: distributions with cold and warm TTFT, latencies over time, TTFT by prompt length, or all together", Do: func() { v.Page = v.after(1) }},
		{Keys: []string{"shift+tab"}, Show: "shift+tab", Name: "previous page", Help: "go to the previous page", Do: func() { v.Page = v.after(-1) }},
		{
			Keys: []string{"enter"}, Show: "enter", Word: "open stall", Help: "show the late token of the selected stall in its request; select with up and down",
			Do: v.OpenStall, Why: view.Unless(func() bool { return len(v.program.Snapshot().Latency.Stalls) > 0 }, "no stall to open"),
		},
	}
}

// after returns the page n pages further on, n ≥ -1.
func (v *View) after(n int) Page {
	pages := v.pages
	if pages == nil {
		pages = allPages
	}
	return pages[(slices.Index(pages, v.Page)+n+len(pages))%len(pages)]
}

// Scroll selects a stall by a number of rows.
func (v *View) Scroll(by int) { v.pick(by) }
