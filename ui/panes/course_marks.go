package panes

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// courseAxis is how much of a chart the labels of its scale take at most.
const courseAxis = 9

// courseMarks draws the user's marks on a chart with one column a second whose last one, at the right edge, is the given second: a thin line
// wherever nothing else is, with the name of the mark at the top. The plot is what lies right of the axis, all of it where that is not known.
func (c *Ctx) courseMarks(plot grid.Area, last event.Time, columns int) {
	free := plot.W
	for i := len(c.Marks) - 1; i >= 0; i-- {
		m := &c.Marks[i]
		ago := int(int64(last)/int64(time.Second) - int64(m.Snapshot.Now)/int64(time.Second))
		x := plot.W - 1 - max(ago, 0)
		if ago < -1 || max(ago, 0) >= columns || x < 0 {
			continue
		}
		for y := range plot.H {
			plot.Under(x, y, grid.Fg(theme.Border), c.Skin.Glyphs.Vertical)
		}
		plot.Cell(x, 0, watch.With(grid.Bold), c.Skin.Glyphs.Up)
		if w := grid.Width(m.Name); x-w >= 0 && x < free {
			plot.Right(x, 0, watch.With(grid.Bold), m.Name)
			free = x - w
		}
	}
}
