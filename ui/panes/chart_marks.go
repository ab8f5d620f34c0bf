package panes

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// chartAxisWidth is the maximum width of the scale labels of a chart.
const chartAxisWidth = 9

// chartMarks draws the user's marks on a chart with one column per second, whose last column, at the right edge, is
// second last. A mark is a thin line behind the curves with its name at the top. plot is the chart right of its scale;
// pass all of it where the width of the scale is not known.
func (c *Ctx) chartMarks(plot grid.Area, last event.Time, columns int) {
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
