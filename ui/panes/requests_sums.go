package panes

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/table"
)

// requestSums draws a rule with where in the list the rows are, and below it sums and percentiles.
func (c *Ctx) requestSums(a grid.Area, cols []requestColumn, t *RequestTable, shown int) {
	gl, l := c.Skin.Glyphs, t.List
	a.Fill(0, 0, a.W, grid.Fg(theme.Border), gl.Horizontal)
	if shown < len(l.Rows) {
		a.Right(a.W, 0, dim, " "+itoa(t.First+1)+" to "+itoa(t.First+shown)+" of "+itoa(len(l.Rows))+" ")
	}
	sums := &l.Sums
	x := markWidth
	for _, col := range cols {
		cell := col.at(a, x, 1, a.H-1)
		end := cell.W - markOf(col.field)
		switch f := col.field; f {
		case table.ID:
			for y, word := range []string{"sum", "p50", "p99"}[:cell.H] {
				cell.Text(0, y, dim, word)
			}
		case table.Prompt:
			cell.Right(end, 0, loud, metric.Count(float64(sums.Prompt)))
		case table.Cached:
			cell.Right(end, 0, loud, metric.Count(float64(sums.Cached)))
		case table.Generated:
			cell.Right(end, 0, loud, metric.Count(float64(sums.Generated)))
		default:
			for y, v := range []float64{math.NaN(), sums.P50[f], sums.P99[f]}[:cell.H] {
				if !math.IsNaN(v) {
					cell.Right(end, y, data, formatField(f, v))
				}
			}
		}
		x += col.w
	}
	c.requestStates(a.Sub(0, 0, a.W-20, 1), sums)
}

// requestStates writes how many rows are in which state into the rule, and how many have missed their target.
func (c *Ctx) requestStates(a grid.Area, sums *table.Sums) {
	l := a.Line(markWidth-1, 0)
	l.Put(dim, " ")
	for _, st := range [...]event.State{event.StateDispatched, event.StateQueued, event.StateFinished, event.StateCancelled, event.StateFailed} {
		if n := sums.States[st]; n > 0 {
			l.Fit(grid.Piece{Style: stateStyle(st), Words: itoa(n)}, grid.Piece{Style: dim, Words: " " + st.String() + "  "})
		}
	}
	if sums.Missed > 0 {
		l.Fit(grid.Piece{Style: bad, Words: itoa(sums.Missed)}, grid.Piece{Style: dim, Words: " missed the TTFT target "})
	}
}
