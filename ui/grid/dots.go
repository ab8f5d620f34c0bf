package grid

import (
	"math"

	"github.com/llmtop/llmtop/theme"
)

// Dots of a Braille cell.
const (
	dotRows    = 4
	dotColumns = 2
)

// braille has the bit of each dot of a cell, by row and column, above the empty pattern.
const braille = 0x2800

var dotBits = [dotRows][dotColumns]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// dots is one cell of a plot: its dots, and the colour of the series drawn last.
type dots struct {
	line, fill uint8
	role       theme.Role
}

// drawDots plots each point as two columns of dots: half way from the point before, and the point itself. A point beside
// a gap is both.
func (k *Curves) drawDots(a Area, s scale, skin *theme.Skin) {
	cells := make([]dots, a.W*a.H)
	if k.Fill && skin.Colour() {
		k.fill(cells, a.W, s)
	}
	for series, role := range k.Roles {
		last := -1 // row of the dot in the column before
		for x := max(a.W-k.N, 0); x < a.W; x++ {
			left, right, ok := k.pair(s, series, a.W, x)
			if !ok {
				last = -1
				continue
			}
			for col, y := range [dotColumns]int{left, right} {
				from, to := y, y
				if last >= 0 {
					from, to = min(y, last+1), max(y, last-1)
				}
				last = y
				if !skin.Colour() && series > 0 { // distinguished by single dots
					if from, to = y, y; col == 0 || series > 1 && x%2 == 0 {
						continue
					}
				}
				for ; from <= to; from++ {
					cell := &cells[from/dotRows*a.W+x]
					cell.line, cell.role = cell.line|dotBits[from%dotRows][col], role
				}
			}
		}
	}
	for i, cell := range cells {
		y := i / a.W
		switch bits := rune(cell.line | cell.fill); {
		case cell.line != 0 && cell.role != k.Roles[0]: // without the fill, which would look like values of this series
			a.Cell(i%a.W, y, Fg(cell.role), braille|rune(cell.line))
		case cell.line != 0:
			a.Cell(i%a.W, y, Fg(cell.role), braille|bits)
		case bits != 0:
			a.Cell(i%a.W, y, Fg(grade(k.Roles[0], brightestFill*float64(a.H-y)/float64(a.H), theme.AreaPrefill, skin)), braille|bits)
		}
	}
}

// fill sets the dots between the first two series, or below the only one.
func (k *Curves) fill(cells []dots, w int, s scale) {
	for x := max(w-k.N, 0); x < w; x++ {
		var from, to [dotColumns]int
		var ok, both bool
		from[0], from[1], ok = k.pair(s, 0, w, x)
		to, both = [dotColumns]int{s.dotAt(0), s.dotAt(0)}, true
		if len(k.Roles) > 1 {
			to[0], to[1], both = k.pair(s, 1, w, x)
		}
		if !ok || !both {
			continue
		}
		for col := range dotColumns {
			for y := min(from[col], to[col]); y <= max(from[col], to[col]); y++ {
				cells[y/dotRows*w+x].fill |= dotBits[y%dotRows][col]
			}
		}
	}
}

// pair returns the rows of the two dots of a series in column x of w; false in a gap.
func (k *Curves) pair(s scale, series, w, x int) (left, right int, ok bool) {
	i := k.N - w + x
	v := k.At(series, i)
	if math.IsNaN(v) {
		return 0, 0, false
	}
	left, right = s.dot(v), s.dot(v)
	if i > 0 {
		if before := k.At(series, i-1); !math.IsNaN(before) {
			left = (s.dot(before) + right) / 2
		}
	}
	return left, right, true
}

// A fill is at most this bright, darker than the lines on it.
const brightestFill = 0.55

// grade returns the colour of a series at a share of its brightness, or other where the terminal has too few colours for
// a gradient.
func grade(r theme.Role, share float64, other theme.Role, skin *theme.Skin) theme.Role {
	if skin.Profile < theme.Colours256 {
		return other
	}
	return theme.Grade(r, share)
}
