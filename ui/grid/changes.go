package grid

import (
	"strconv"

	"github.com/llmtop/llmtop/theme"
)

// maxGap is the maximum number of unchanged cells between two changed ones that are written in one go: moving the
// cursor costs about as many bytes.
const maxGap = 8

// Copy makes the grid a copy of another one.
func (g *Grid) Copy(from *Grid) {
	g.W, g.H = from.W, from.H
	g.cells = append(g.cells[:0], from.cells...)
	g.clusters = append(g.clusters[:0], from.clusters...)
}

// Changes returns the bytes that turn a terminal showing before into one showing the grid, in the same skin: the
// changed cells of each row. If before is nil or has another size, it returns the whole frame. It ends with the style
// reset. The bytes are valid until g encodes another frame.
func (g *Grid) Changes(before *Grid, skin *theme.Skin) []byte {
	whole := before == nil || before.W != g.W || before.H != g.H
	var p pen
	g.out = g.out[:0]
	for y := range g.H {
		row := g.cells[y*g.W : (y+1)*g.W]
		for x := 0; x < g.W; {
			from, to := x, g.W
			if !whole {
				from, to = g.nextChange(before, y, x)
			}
			if from < to {
				g.out = append(strconv.AppendInt(append(g.out, "\x1b["...), int64(y+1), 10), ';')
				g.out = append(strconv.AppendInt(g.out, int64(from+1), 10), 'H')
				g.write(row[from:to], skin, &p)
			}
			x = max(to, from)
		}
	}
	g.lift(&p)
	return g.out
}

// nextChange returns the next run of changed cells of a row from x, empty at the end of the row without changes. It
// never splits a wide character.
func (g *Grid) nextChange(before *Grid, y, x int) (from, to int) {
	for from = x; from < g.W && g.sameCell(before, y*g.W+from); from++ {
	}
	to = from
	for last := from; last < g.W && last-to <= maxGap; last++ {
		if !g.sameCell(before, y*g.W+last) {
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

// sameCell reports whether a cell looks the same in a grid of the same size.
func (g *Grid) sameCell(before *Grid, i int) bool {
	a, b := &g.cells[i], &before.cells[i]
	if a.style != b.style || a.w != b.w {
		return false
	}
	if a.r >= 0 || b.r >= 0 {
		return a.r == b.r
	}
	return g.clusters[-a.r-1] == before.clusters[-b.r-1]
}
