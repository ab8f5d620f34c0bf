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
	NumPanes
)

var names = [NumPanes]string{"TTFT", "ITL", "Experts", "Throughput", "Machine", "Text", "Insights", "Queue"}

// String returns the title of the pane.
func (id ID) String() string { return names[id] }

// forms holds the draw functions of each pane: for the overview, and zoomed to the full screen.
var forms = [NumPanes]struct {
	draw func(grid.Area, *store.Snapshot, *pane.Frame)
	zoom func(grid.Area, *store.Snapshot, *pane.Frame, *Zoom)
}{
	{latency.DrawTTFT, func(a grid.Area, s *store.Snapshot, c *pane.Frame, z *Zoom) { latency.ZoomTTFT(a, s, c, &z.scroll) }},
	{latency.DrawITL, func(a grid.Area, s *store.Snapshot, c *pane.Frame, _ *Zoom) { latency.ZoomITL(a, s, c) }},
	{experts.DrawPane, func(a grid.Area, s *store.Snapshot, c *pane.Frame, _ *Zoom) { experts.DrawPane(a, s, c) }},
	{drawThroughput, func(a grid.Area, s *store.Snapshot, c *pane.Frame, _ *Zoom) { zoomThroughput(a, s, c) }},
	{system.DrawPane, func(a grid.Area, s *store.Snapshot, c *pane.Frame, z *Zoom) { system.DrawZoomed(a, &z.machine, s, c) }},
	{drawText, func(a grid.Area, s *store.Snapshot, c *pane.Frame, z *Zoom) { zoomText(a, s, c, &z.scroll) }},
	{drawInsights, func(a grid.Area, s *store.Snapshot, c *pane.Frame, z *Zoom) { zoomInsights(a, s, c, &z.scroll) }},
	{drawQueue, func(a grid.Area, s *store.Snapshot, c *pane.Frame, _ *Zoom) { drawQueue(a, s, c) }},
}

// Zoom is the state of a pane in full screen.
type Zoom struct {
	scroll  int // first row of a list; of a text, the rows below the screen
	machine system.Table
}

// Draw draws one pane in the overview, or in full screen if z is not nil.
func Draw(id ID, a grid.Area, s *store.Snapshot, f *pane.Frame, focused bool, z *Zoom) {
	f.Title, f.Focused = id.String(), focused
	switch {
	case a.W < pane.LeastWidth || a.H < pane.LeastHeight:
		f.Box(a, "")
	case z != nil:
		forms[id].zoom(a, s, f, z)
	default:
		forms[id].draw(a, s, f)
	}
}
