package panes

import (
	"slices"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Rows says which rows of a table are shown and which is selected, and, after the table has been drawn, where things are. F names its columns.
type Rows[F any] struct {
	Selected int // a row of the list
	First    int // the row at the top

	Heads []Head[F]
	Body  grid.Rect // where the rows are, on the screen
}

// Head is where the head of a column is, on the screen.
type Head[F any] struct {
	Field F
	At    grid.Rect
}

// HeadAt is the column whose head is at a place of the screen.
func (t *Rows[F]) HeadAt(x, y int) (field F, ok bool) {
	for _, h := range t.Heads {
		if h.At.Has(x, y) {
			return h.Field, true
		}
	}
	return field, false
}

// RowAt is the row of the list that is at a place of the screen.
func (t *Rows[F]) RowAt(x, y int) (row int, ok bool) {
	return t.First + y - t.Body.Y, t.Body.Has(x, y)
}

// scroll moves the rows, of n, as little as brings the selected one into a body of the given height, and returns which are shown.
func (t *Rows[F]) scroll(n int, body grid.Area) (from, to int) {
	t.First = max(min(t.First, t.Selected, n-body.H), t.Selected-body.H+1, 0)
	from, to = t.First, min(t.First+body.H, n)
	t.Body = grid.Rect{X: body.X, Y: body.Y, W: body.W, H: to - from}
	return from, to
}

// tableColumn is a column of a table with its width, a gap of one included. Where not all fit, those of the highest rank are left out.
type tableColumn[F any] struct {
	field   F
	w, rank int
}

// fitting are the columns that fit into w cells, the one that the rows are sorted by first of all, without those that are not wanted; left is
// what they leave.
func fitting[F comparable](columns []tableColumn[F], w int, by F, wanted func(F) bool) (fit []tableColumn[F], left int) {
	order := slices.Clone(columns)
	slices.SortStableFunc(order, func(a, b tableColumn[F]) int { return a.rank - b.rank })
	if i := slices.IndexFunc(order, func(c tableColumn[F]) bool { return c.field == by }); i > 0 {
		order = slices.Insert(order, 0, order[i])
	}
	taken := make(map[F]bool, len(columns))
	left = w - markWidth
	for _, c := range order {
		if !taken[c.field] && c.w <= left && (c.field == by || wanted(c.field)) {
			taken[c.field] = true
			left -= c.w
		}
	}
	return slices.DeleteFunc(slices.Clone(columns), func(c tableColumn[F]) bool { return !taken[c.field] }), left
}

// columnHead writes the head of a column, with an arrow if the rows are sorted by it.
func (c *Ctx) columnHead(cell grid.Area, title string, left, sorted, down bool) {
	st := dim
	if sorted {
		st = grid.Fg(theme.Accent).With(grid.Bold)
		title = string(c.arrow(down)) + title
	}
	if left {
		cell.Text(0, 0, st, title)
	} else {
		cell.Right(cell.W, 0, st, title)
	}
}

// mark marks a row as the selected one.
func (c *Ctx) mark(a grid.Area, y int) {
	a.Cell(0, y, grid.Fg(theme.Accent).With(grid.Bold), c.Skin.Glyphs.Arrow)
	attr := grid.Attr(0)
	if !c.Skin.Colour() {
		attr = grid.Reverse
	}
	a.Paint(0, y, a.W, theme.Select, attr)
}

// arrow is the direction of an order.
func (c *Ctx) arrow(down bool) rune {
	if down {
		return c.Skin.Glyphs.Down
	}
	return c.Skin.Glyphs.Up
}
