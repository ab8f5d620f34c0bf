package pane

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Rows is the selection and scroll position of a list and, after drawing, the screen position of its rows.
type Rows struct {
	Selected int // index in the list
	First    int // index of the top row

	Body grid.Rect // screen area of the rows
}

// RowAt returns the list index of the row at screen position x, y.
func (t *Rows) RowAt(x, y int) (row int, ok bool) {
	return t.First + y - t.Body.Y, t.Body.Has(x, y)
}

// ClickRow pins the row under the mouse, and reports whether it was selected already.
func (t *Rows) ClickRow(x, y int, pin func(row int)) (again bool) {
	row, ok := t.RowAt(x, y)
	if ok {
		again = row == t.Selected
		pin(row)
	}
	return again
}

// Select selects a row of a list of n rows, or the nearest one that exists.
func (t *Rows) Select(row, n int) { t.Selected = max(min(row, n-1), 0) }

// Show scrolls a list of n rows as little as needed to show the selected one in body, and returns the range of rows
// shown.
func (t *Rows) Show(n int, body grid.Area) (from, to int) {
	t.First = max(min(t.First, t.Selected, n-body.H), t.Selected-body.H+1, 0)
	from, to = t.First, min(t.First+body.H, n)
	t.Body = grid.Rect{X: body.X, Y: body.Y, W: body.W, H: to - from}
	return from, to
}

// Range returns which of n rows are shown, for the rule below them; "" if all are.
func (t *Rows) Range(n int) string {
	if t.Body.H >= n {
		return ""
	}
	return fmt.Sprintf(" %d to %d of %d ", t.First+1, t.First+t.Body.H, n)
}

// Head is the screen position of a column head of a table.
type Head[F any] struct {
	Field F
	At    grid.Rect
}

// ClickTable sorts a table by the column head under the mouse, or clicks the row there.
func ClickTable[F any](t *Rows, heads []Head[F], x, y int, sort func(F), pin func(row int)) (again bool) {
	for _, h := range heads {
		if h.At.Has(x, y) {
			sort(h.Field)
			return false
		}
	}
	return t.ClickRow(x, y, pin)
}

// MarkWidth is the width of the mark of the selected row.
const MarkWidth = 2

// TableColumn is a column of a table; its width w includes a gap of one. Where not all fit, columns of the highest rank
// are omitted.
type TableColumn[F any] struct {
	Field   F
	W, Rank int
}

// Fitting returns the wanted columns that fit into w cells, in display order, and the width left. The sort column by
// always comes first in the choice.
func Fitting[F comparable](columns []TableColumn[F], w int, by F, wanted func(F) bool) (fit []TableColumn[F], left int) {
	order := slices.Clone(columns)
	slices.SortStableFunc(order, func(a, b TableColumn[F]) int { return a.Rank - b.Rank })
	if i := slices.IndexFunc(order, func(c TableColumn[F]) bool { return c.Field == by }); i > 0 {
		order = slices.Insert(order, 0, order[i])
	}
	taken := make(map[F]bool, len(columns))
	left = w - MarkWidth
	for _, c := range order {
		if !taken[c.Field] && c.W <= left && (c.Field == by || wanted(c.Field)) {
			taken[c.Field] = true
			left -= c.W
		}
	}
	return slices.DeleteFunc(slices.Clone(columns), func(c TableColumn[F]) bool { return !taken[c.Field] }), left
}

// DrawColumnHead writes the head of a column, with an arrow if the rows are sorted by it.
func DrawColumnHead(cell grid.Area, f *Frame, title string, left, sorted, down bool) {
	st := Dim
	if sorted {
		st = grid.Fg(theme.Accent).With(grid.Bold)
		title = string(arrow(f, down)) + title
	}
	if left {
		cell.Text(0, 0, st, title)
	} else {
		cell.Right(cell.W, 0, st, title)
	}
}

// MarkRow marks row y as the selected one, with an arrow.
func MarkRow(a grid.Area, f *Frame, y int) {
	a.Cell(0, y, grid.Fg(theme.Accent).With(grid.Bold), f.Skin.Glyphs.Arrow)
	SelectRow(a, f.Skin, y)
}

// SelectRow gives row y the background of the selected one.
func SelectRow(a grid.Area, skin *theme.Skin, y int) {
	attr := grid.Attr(0)
	if !skin.Colour() {
		attr = grid.Reverse
	}
	a.Paint(0, y, a.W, theme.Select, attr)
}

// arrow returns the arrow of a sort order.
func arrow(f *Frame, down bool) rune {
	if down {
		return f.Skin.Glyphs.Down
	}
	return f.Skin.Glyphs.Up
}
