package panes

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
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
	draw func(grid.Area, *store.Snapshot, *Ctx)
	zoom func(grid.Area, *store.Snapshot, *Ctx, *Zoom)
}{
	{drawTTFT, func(a grid.Area, s *store.Snapshot, c *Ctx, z *Zoom) { zoomTTFT(a, s, c, &z.Scroll) }},
	{drawITL, func(a grid.Area, s *store.Snapshot, c *Ctx, _ *Zoom) { zoomITL(a, s, c) }},
	{drawExperts, func(a grid.Area, s *store.Snapshot, c *Ctx, _ *Zoom) { drawExperts(a, s, c) }},
	{drawThroughput, func(a grid.Area, s *store.Snapshot, c *Ctx, _ *Zoom) { zoomThroughput(a, s, c) }},
	{drawMachine, func(a grid.Area, s *store.Snapshot, c *Ctx, z *Zoom) { zoomMachine(a, &z.Machine, s, c) }},
	{drawText, func(a grid.Area, s *store.Snapshot, c *Ctx, z *Zoom) { zoomText(a, s, c, &z.Scroll) }},
	{drawInsights, func(a grid.Area, s *store.Snapshot, c *Ctx, z *Zoom) { zoomInsights(a, s, c, &z.Scroll) }},
	{drawQueue, func(a grid.Area, s *store.Snapshot, c *Ctx, _ *Zoom) { drawQueue(a, s, c) }},
}

// Zoom is the state of a pane in full screen.
type Zoom struct {
	Scroll  int // first row of a list; of a text, the rows below the screen
	Machine SystemView
}

// Draw draws one pane in the overview, or in full screen if z is not nil.
func Draw(id ID, a grid.Area, s *store.Snapshot, c *Ctx, focused bool, z *Zoom) {
	c.Title, c.Focused = id.String(), focused
	switch {
	case a.W < leastWidth || a.H < leastHeight:
		c.frame(a, "")
	case z != nil:
		forms[id].zoom(a, s, c, z)
	default:
		forms[id].draw(a, s, c)
	}
}
