package grid

import (
	"fmt"

	"github.com/llmtop/llmtop/theme"
)

// near is how many cells that have not changed may lie between two that have, so that both are written at once: to move the cursor costs
// about as much.
const near = 8

// Copy makes the grid the same as another one.
func (g *Grid) Copy(of *Grid) {
	g.W, g.H = of.W, of.H
	g.cells = append(g.cells[:0], of.cells...)
	g.clusters = append(g.clusters[:0], of.clusters...)
}

// Changes is what a terminal takes that shows before, in the same skin, to show the grid instead: of each row the cells that differ. With
// nil, or a grid of another size, it is the whole frame. Nothing is left of the style at the end.
func (g *Grid) Changes(before *Grid, skin *theme.Skin) []byte {
	whole := before == nil || before.W != g.W || before.H != g.H
	var out []byte
	for y := range g.H {
		row := g.cells[y*g.W : (y+1)*g.W]
		for x := 0; x < g.W; {
			from, to := x, g.W
			if !whole {
				from, to = g.changed(before, y, x)
			}
			if from < to {
				out = fmt.Appendf(out, "\x1b[%d;%dH", y+1, from+1)
				g.out = g.out[:0]
				g.row(row[from:to], skin)
				out = append(out, g.out...)
			}
			x = max(to, from)
		}
	}
	return out
}

// changed is where the next cells of a row are that differ, from x on: empty at the end of the row if none do. Both halves of a wide
// character belong together.
func (g *Grid) changed(before *Grid, y, x int) (from, to int) {
	for from = x; from < g.W && g.same(before, y*g.W+from); from++ {
	}
	to = from
	for last := from; last < g.W && last-to <= near; last++ {
		if !g.same(before, y*g.W+last) {
			to = last + 1
		}
	}
	if from < g.W && from > x && g.cells[y*g.W+from].w == 0 {
		from--
	}
	for to < g.W && g.cells[y*g.W+to].w == 0 {
		to++
	}
	return from, to
}

// same reports whether a cell looks as it did in a grid of the same size.
func (g *Grid) same(before *Grid, i int) bool {
	a, b := &g.cells[i], &before.cells[i]
	if a.style != b.style || a.w != b.w {
		return false
	}
	if a.r >= 0 || b.r >= 0 {
		return a.r == b.r
	}
	return g.clusters[-a.r-1] == before.clusters[-b.r-1]
}
