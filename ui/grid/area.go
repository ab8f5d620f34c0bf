package grid

import (
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Rect is a rectangle of cells on the screen.
type Rect struct{ X, Y, W, H int }

// Has reports whether the rectangle contains a cell.
func (r Rect) Has(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }

// Area is a part of a grid with its own coordinates. It clips everything drawn outside.
type Area struct {
	Rect
	g *Grid
}

// Area returns the part of the grid inside r.
func (g *Grid) Area(r Rect) Area {
	x0, x1 := span(r.X, r.W, g.W)
	y0, y1 := span(r.Y, r.H, g.H)
	return Area{Rect{x0, y0, x1 - x0, y1 - y0}, g}
}

// All returns the whole grid as an area.
func (g *Grid) All() Area { return g.Area(Rect{0, 0, g.W, g.H}) }

// Sub returns a part of the area, in the area's coordinates.
func (a Area) Sub(x, y, w, h int) Area {
	x0, x1 := span(x, w, a.W)
	y0, y1 := span(y, h, a.H)
	return Area{Rect{a.X + x0, a.Y + y0, x1 - x0, y1 - y0}, a.g}
}

// Inset returns the area without a margin of dx columns and dy rows on each side.
func (a Area) Inset(dx, dy int) Area { return a.Sub(dx, dy, a.W-2*dx, a.H-2*dy) }

// Cell draws one character of width 1.
func (a Area) Cell(x, y int, st Style, r rune) {
	if x >= 0 && y >= 0 && x < a.W && y < a.H {
		a.g.set(a.X+x, a.Y+y, r, 1, st)
	}
}

// Under draws one character of width 1 in a blank cell and keeps any other.
func (a Area) Under(x, y int, st Style, r rune) {
	if x >= 0 && y >= 0 && x < a.W && y < a.H {
		if c := &a.g.cells[(a.Y+y)*a.g.W+a.X+x]; c.r == ' ' && c.w == 1 {
			c.r, c.style.FG = r, st.FG
		}
	}
}

// span clips the n cells from x to the range 0 to size, for any int: the rest is from <= i < to.
func span(x, n, size int) (from, to int) {
	from = min(max(x, 0), max(size, 0))
	switch {
	case n <= 0 || x >= size:
		return from, from
	case x < 0:
		n += x
	}
	return from, from + min(max(n, 0), size-from)
}

// Fill draws one character of width 1 in w cells.
func (a Area) Fill(x, y, w int, st Style, r rune) {
	from, to := span(x, w, a.W)
	for i := from; i < to; i++ {
		a.Cell(i, y, st, r)
	}
}

// Paint sets the background of w cells from x and adds attributes; the rest of their style stays.
func (a Area) Paint(x, y, w int, bg theme.Role, attr Attr) {
	if y < 0 || y >= a.H {
		return
	}
	from, to := span(x, w, a.W)
	for i := from; i < to; i++ {
		c := &a.g.cells[(a.Y+y)*a.g.W+a.X+i]
		c.style.BG, c.style.Attr = bg, c.style.Attr|attr
	}
}

// Fade dims all cells of the area.
func (a Area) Fade() {
	for y := range a.H {
		row := a.g.cells[(a.Y+y)*a.g.W+a.X:][:a.W]
		for i := range row {
			row[i].style.Attr = row[i].style.Attr&^Bold | Faint
		}
	}
}

// Text draws sanitised text from (x, y) to the area's right edge and returns its width in cells.
// Text that does not fit ends with an ellipsis.
func (a Area) Text(x, y int, st Style, s string) int {
	if Width(s) > a.W-x { // spaces at the end may be cut
		s = strings.TrimRight(s, " ")
	}
	return a.Elide(x, y, a.W-x, st, s, '…')
}

// Clip draws sanitised text in at most w cells and returns the number of cells used. It drops a wide character that
// fits only half.
func (a Area) Clip(x, y, w int, st Style, s string) int {
	if y < 0 || y >= a.H || x < 0 || x >= a.W {
		return 0
	}
	_, end := span(x, w, a.W)
	at := x
	for _, r := range s {
		r = visible(r)
		n := sanitize.Width(r)
		if n == 0 {
			if at > x {
				a.g.combine(a.X+at, a.Y+y, r)
			}
			continue
		}
		if at+n > end {
			break
		}
		a.g.set(a.X+at, a.Y+y, r, uint8(n), st)
		at += n
	}
	return at - x
}

// Elide draws text like Clip, with an ellipsis in the last cell if the text does not fit.
func (a Area) Elide(x, y, w int, st Style, s string, ellipsis rune) int {
	if Width(s) <= w {
		return a.Clip(x, y, w, st, s)
	}
	if w < 1 {
		return 0
	}
	n := a.Clip(x, y, w-1, st, s)
	a.Cell(x+n, y, st, ellipsis)
	return n + 1
}

// Right draws text so that it ends before column x1, and returns its first column.
func (a Area) Right(x1, y int, st Style, s string) int {
	x := x1 - Width(s)
	a.Clip(max(x, 0), y, x1-max(x, 0), st, s)
	return x
}

// Width returns the number of cells of sanitised text.
func Width(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return sanitize.StringWidth(s)
		}
	}
	return len(s)
}

// Line writes one row from left to right, piece by piece.
type Line struct {
	a    Area
	X, Y int
}

// Line starts a row at (x, y).
func (a Area) Line(x, y int) Line { return Line{a, x, y} }

// Put writes text and advances.
func (l *Line) Put(st Style, s string) *Line {
	l.X += l.a.Text(l.X, l.Y, st, s)
	return l
}

// Fit writes pieces of text if all of them fit, and reports whether they did.
func (l *Line) Fit(pieces ...Piece) bool {
	n := 0
	for _, p := range pieces {
		n += Width(p.Words)
	}
	if n > l.Room() {
		return false
	}
	for _, p := range pieces {
		l.Put(p.Style, p.Words)
	}
	return true
}

// Piece is text in one style.
type Piece struct {
	Style Style
	Words string
}

// Rune writes one character of width 1.
func (l *Line) Rune(st Style, r rune) *Line {
	l.a.Cell(l.X, l.Y, st, r)
	l.X++
	return l
}

// Gap skips n cells.
func (l *Line) Gap(n int) *Line {
	l.X += n
	return l
}

// Tail writes text right-aligned in a column of w cells.
func (l *Line) Tail(w int, st Style, s string) *Line {
	l.a.Right(l.X+w, l.Y, st, s)
	l.X += w
	return l
}

// Room returns the number of cells left in the row.
func (l *Line) Room() int { return l.a.W - l.X }
