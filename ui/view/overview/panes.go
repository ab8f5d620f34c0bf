package overview

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/experts"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/system"
)

// ID identifies a pane.
type ID uint8

// The panes, in focus order.
const (
	TTFT ID = iota
	ITL
	Experts
	Throughput
	Machine
	Text
	Insights
	Queue
	Breakdown
	NumPanes
)

var names = [NumPanes]string{"TTFT", "ITL", "Experts", "Throughput", "Machine", "Text", "Insights", "Queue", "Breakdown"}

// String returns the title of the pane.
func (id ID) String() string { return names[id] }

// form is how a pane is drawn: in the overview, and zoomed to the full screen. All that a windowed one shows covers
// windows.
type form struct {
	draw func(grid.Area, *store.Snapshot, *pane.Frame)
	zoom func(grid.Area, *store.Snapshot, *pane.Frame, *Zoom)

	windowed bool
}

// forms holds the form of each pane.
var forms = [NumPanes]form{
	{latency.DrawTTFT, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { latency.ZoomTTFT(a, s, f, &z.scroll) }, true},
	{latency.DrawITL, same(latency.ZoomITL), true},
	{experts.DrawPane, same(experts.DrawPane), true},
	{drawThroughput, same(zoomThroughput), false},
	{system.DrawPane, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { system.DrawZoomed(a, s, f, &z.machine) }, false},
	{drawText, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { zoomText(a, s, f, &z.scroll) }, false},
	{drawInsights, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { zoomInsights(a, s, f, &z.scroll) }, false},
	{drawQueue, same(drawQueue), false},
	{drawBreakdown, same(drawBreakdown), false},
}

// same makes the zoomed form of a pane that does not scroll.
func same(draw func(grid.Area, *store.Snapshot, *pane.Frame)) func(grid.Area, *store.Snapshot, *pane.Frame, *Zoom) {
	return func(a grid.Area, s *store.Snapshot, f *pane.Frame, _ *Zoom) { draw(a, s, f) }
}

// Zoom is the state of a pane in full screen.
type Zoom struct {
	scroll  int // first row of a list; of a text, the rows below the screen
	machine system.Table
}

// Draw draws one pane in the overview, or in full screen if z is not nil.
func Draw(a grid.Area, s *store.Snapshot, f *pane.Frame, id ID, focused bool, z *Zoom) {
	f.Title, f.Focused = id.String(), focused
	form := &forms[id]
	draw := func(s *store.Snapshot) {
		switch {
		case a.W < pane.LeastWidth || a.H < pane.LeastHeight:
			f.Box(a, "")
		case z != nil:
			form.zoom(a, s, f, z)
		default:
			form.draw(a, s, f)
		}
	}
	if form.windowed {
		f.Windowed(a, s, draw)
	} else {
		draw(s)
	}
}
