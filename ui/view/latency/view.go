// Package latency is the Latency view, with the panes of TTFT and ITL.
package latency

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/polled"
	"github.com/llmtop/llmtop/ui/view"
)

// View is the Latency view.
type View struct{ Page Page }

// Name implements view.View.
func (v *View) Name() string { return "Latency" }

// Missing implements view.Offerer.
func (v *View) Missing(s *store.Snapshot) (why, advice string) { return polled.MissingLatency(s) }

// Draw implements view.View.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	f.Windowed(a, s, func(s *store.Snapshot) { drawLatency(a, v.Page, s, f) })
}

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	return []view.Key{
		{Keys: []string{"tab"}, Show: "tab", Word: "page", Help: "switch pages: distributions with cold and warm TTFT, latencies over time, TTFT by prompt length, or all together", Do: func() { v.turn(1) }},
		{Keys: []string{"shift+tab"}, Show: "shift+tab", Name: "previous page", Help: "go to the previous page", Do: func() { v.turn(NumPages - 1) }},
	}
}

func (v *View) turn(pages Page) { v.Page = (v.Page + pages) % NumPages }

// Scroll implements view.View.
func (v *View) Scroll(int) {}

// Click implements view.View.
func (v *View) Click(int, int) {}
