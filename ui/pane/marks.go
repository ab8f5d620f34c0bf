package pane

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Mark is a moment marked by the user, with the snapshot of that moment, router picks of all windows included.
type Mark struct {
	Name     string // m1, m2, …
	Snapshot *store.Snapshot
}

// Mark returns the newest mark, or nil.
func (f *Frame) Mark() *Mark {
	if len(f.Marks) == 0 {
		return nil
	}
	return &f.Marks[len(f.Marks)-1]
}

// SinceLabel returns the time from the mark to a snapshot.
func (m *Mark) SinceLabel(s *store.Snapshot) string {
	if d := time.Duration(s.Now - m.Snapshot.Now); d < 0 {
		return "before " + m.Name
	} else if d < 2*time.Minute {
		return "since " + m.Name + " " + strconv.Itoa(int(d/time.Second)) + " s"
	}
	return "since " + m.Name + " " + metric.Duration(int64(s.Now-m.Snapshot.Now))
}

// chartAxisWidth is the maximum width of the scale labels of a chart.
const chartAxisWidth = 9

// ChartMarks draws the user's marks on a chart with one column per second, whose last column, at the right edge, is
// second last. A mark is a thin line behind the curves with its name at the top. plot is the chart right of its scale;
// pass the whole chart if the width of the scale is unknown.
func ChartMarks(plot grid.Area, f *Frame, last event.Time, columns int) {
	free := plot.W
	for i := len(f.Marks) - 1; i >= 0; i-- {
		m := &f.Marks[i]
		ago := int(int64(last)/int64(time.Second) - int64(m.Snapshot.Now)/int64(time.Second))
		x := plot.W - 1 - max(ago, 0)
		if ago < -1 || max(ago, 0) >= columns || x < 0 {
			continue
		}
		for y := range plot.H {
			plot.Under(x, y, grid.Fg(theme.Border), f.Skin.Glyphs.Vertical)
		}
		plot.Cell(x, 0, Watch.With(grid.Bold), f.Skin.Glyphs.Up)
		if w := grid.Width(m.Name); x-w >= 0 && x < free {
			plot.Right(x, 0, Watch.With(grid.Bold), m.Name)
			free = x - w
		}
	}
}
