package panes

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// leastGlance is how many rows the table must leave for a glance at the request that is selected.
const leastGlance = 16

// requestGlance shows of the selected request what the view of it alone begins with.
func (c *Ctx) requestGlance(a grid.Area, r *store.Request, s *store.Snapshot) {
	a.Fill(0, 0, a.W, grid.Fg(theme.Border), c.Skin.Glyphs.Horizontal)
	a.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), " "+textTitle(r, c)+" ")
	a = a.Sub(0, 1, a.W, a.H-1)
	v := &RequestView{Request: r, Still: true}
	v.settle()
	left, right := a, a
	if a.W >= 104 {
		w := a.W*58/100 - 2
		left, right = a.Sub(0, 0, w, a.H), a.Sub(w+3, 0, a.W-w-3, a.H)
		used := c.waterfall(left, v, s) + 1
		if left.H-used >= 4 && len(r.Gaps) > 0 {
			c.gapColumns(left.Sub(0, used, w, min(left.H-used, 20)), v)
		}
	} else {
		used := c.waterfall(left.Sub(0, 0, a.W, a.H-4), v, s)
		right = a.Sub(0, used, a.W, a.H-used)
	}
	rows := min(c.cellRows(right.W, r)+1, max(right.H/2, 3))
	c.tokenCells(right.Sub(0, 0, right.W, rows), v)
	if rest := right.H - rows - 1; rest >= 4 && r.Text != "" {
		c.tokenText(right.Sub(0, rows+1, right.W, rest), v)
	}
}
