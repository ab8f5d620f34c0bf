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
	Page  Page
	pages []Page // with data, of the last frame; nil before it
}

// Name implements view.View.
func (v *View) Name() string { return "Latency" }

// Missing implements view.Offerer.
func (v *View) Missing(s *store.Snapshot) (why, advice string) {
	if rows, _ := distributions(s, metric.Session); len(rows)+len(s.Requests)+len(s.Aggregates.Slots) == 0 {
		return noLatency, measureLatency
	}
	return "", ""
}

// Draw implements view.View.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.pages = pagesOf(s)
	if !slices.Contains(v.pages, v.Page) {
		v.Page = PageAll
	}
	f.Windowed(a, s, func(s *store.Snapshot) { drawLatency(a, s, f, v.Page, v.after(1)) })
}

var allPages = []Page{PageAll, PageDistributions, PageOverTime, PagePrompt}

// pagesOf returns the pages that have data.
func pagesOf(s *store.Snapshot) []Page {
	switch {
	case measured(s):
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

// Scroll implements view.View.
func (v *View) Scroll(int) {}

// Click implements view.View.
func (v *View) Click(int, int) {}
