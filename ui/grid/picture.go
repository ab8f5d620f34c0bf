package grid

import (
	"math"

	"github.com/llmtop/llmtop/theme"
)

// Frame draws a box of thin lines along the area's edge. In ASCII a box that touches the one above or to the left takes
// its place on that side, since two lines of | and + beside each other do not read as two boxes.
func (a Area) Frame(st Style, gl *theme.Glyphs) {
	if a.W < 2 || a.H < 2 {
		return
	}
	a.Fill(1, 0, a.W-2, st, gl.Horizontal)
	a.Fill(1, a.H-1, a.W-2, st, gl.Horizontal)
	for y := 1; y < a.H-1; y++ {
		a.Cell(0, y, st, gl.Vertical)
		a.Cell(a.W-1, y, st, gl.Vertical)
	}
	a.Cell(0, 0, st, gl.TopLeft)
	a.Cell(a.W-1, 0, st, gl.TopRight)
	a.Cell(0, a.H-1, st, gl.BottomLeft)
	a.Cell(a.W-1, a.H-1, st, gl.BottomRight)
	if gl.ASCII {
		shared := false // the line below serves both boxes
		for x := range a.W {
			a.giveWay(x, -1, gl.Horizontal, gl.Vertical)
			if c := a.border(x, a.H); c != nil && (c.r == gl.Horizontal || c.r == '+') {
				c.style, shared = st, true
			}
		}
		for x := 0; shared && x < a.W; x++ {
			a.giveWay(x, a.H-1, gl.Horizontal, gl.Vertical)
		}
		for y := range a.H {
			a.giveWay(-1, y, gl.Vertical, gl.Horizontal)
			a.giveWay(a.W, y, gl.Vertical, gl.Horizontal)
		}
	}
}

// border returns the cell at a place in the area or beside it if a box has drawn it, else nil.
func (a Area) border(x, y int) *cell {
	if x, y = x+a.X, y+a.Y; x < 0 || y < 0 || x >= a.g.W || y >= a.g.H {
		return nil
	}
	c := &a.g.cells[y*a.g.W+x]
	if fg := c.style.FG; fg != theme.Border && fg != theme.BorderFocus {
		return nil
	}
	return c
}

// giveWay removes a cell of a box: a cell of its line becomes blank, its corner continues the line across.
func (a Area) giveWay(x, y int, line, across rune) {
	switch c := a.border(x, y); {
	case c == nil:
	case c.r == line:
		c.r = ' '
	case c.r == '+':
		c.r = across
	}
}

// Bar draws a gauge of w cells filled to share (0..1) over a track. A share above 0 fills at least one cell.
func (a Area) Bar(x, y, w int, share float64, fg theme.Role, colour bool, gl *theme.Glyphs) {
	full := int(math.Round(clamp(share) * float64(max(w, 0))))
	if share > 0 {
		full = max(full, 1)
	}
	track := gl.Track
	if colour {
		track = gl.Gauge
	}
	a.Fill(x, y, min(full, w), Fg(fg), gl.Gauge)
	a.Fill(x+full, y, w-full, Fg(theme.Track), track)
}

// Seg is one segment of a stacked bar.
type Seg struct {
	Share float64 // of the bar's width, 0..1
	Role  theme.Role
	Fill  rune // character without colour
}

// Stack draws segments one after another on w cells; each cell shows the segment that covers most of it. A bar above 0
// has at least one cell.
func (a Area) Stack(x, y, w int, segs []Seg, colour bool, gl *theme.Glyphs) {
	total := 0.0
	for _, s := range segs {
		total += clamp(s.Share)
	}
	full := int(math.Round(clamp(total) * float64(w)))
	if total > 0 {
		full = max(full, 1)
	}
	from, to := span(x, min(full, w), a.W)
	for at := from; at < to; at++ {
		s := segs[covering(segs, float64(at-x), float64(w))]
		fill := s.Fill
		if colour && !gl.ASCII {
			fill = gl.Bar
		}
		a.Cell(at, y, Fg(s.Role), fill)
	}
}

// covering returns the index of the segment that covers most of the cell at position at, on a bar of w cells.
func covering(segs []Seg, at, w float64) int {
	best, most, edge := len(segs)-1, 0.0, 0.0
	for k, s := range segs {
		from := edge
		edge += clamp(s.Share) * w
		if n := min(edge, at+1) - max(from, at); n > most {
			best, most = k, n
		}
	}
	return best
}

// Column draws one column of h cells upward from row y, filled to share (0..1) in eighths of a cell; a share below 0
// leaves it blank.
func (a Area) Column(x, y, h int, share float64, st Style, gl *theme.Glyphs) {
	if share < 0 || math.IsNaN(share) {
		return
	}
	eighths := max(clamp(share)*float64(h)*8, 1)
	top, bottom := span(y-h+1, h, a.H)
	for row := top; row < bottom; row++ {
		if n := min(max(int(math.Round(eighths))-(y-row)*8, 0), 8); n > 0 {
			a.Cell(x, row, st, gl.Eighths[n])
		}
	}
}

// Filled draws values like Spark, as a bright line over an area of a darker colour: a gradient where the terminal has 256
// colours.
func (a Area) Filled(x, y, w, h, n int, at func(int) float64, top float64, line, area theme.Role, skin *theme.Skin) {
	gl := skin.Glyphs
	from, to := span(x, w, a.W)
	for col := max(from, x+w-n); col < to; col++ {
		v := at(n - (x + w - col))
		if math.IsNaN(v) || top <= 0 {
			continue
		}
		eighths := max(int(math.Round(clamp(v/top)*float64(h)*8)), 1)
		edge := (eighths - 1) / 8
		first, last := span(y-edge+1, edge, a.H)
		for row := first; row < last; row++ {
			a.Cell(col, row, Fg(grade(line, brightestFill*float64(y-row+1)/float64(h), area, skin)), gl.Block)
		}
		a.Cell(col, y-edge, Fg(line).On(theme.Background), gl.Eighths[eighths-edge*8])
	}
}

// Spark draws n values as columns, the newest at the right; NaN is a gap. top is the value of a full column. Where the
// terminal has 256 colours, higher columns are brighter.
func (a Area) Spark(x, y, w, h, n int, at func(int) float64, top float64, fg theme.Role, skin *theme.Skin) {
	from, to := span(x, w, a.W)
	for col := max(from, x+w-n); col < to; col++ {
		v := at(n - (x + w - col))
		if math.IsNaN(v) || top <= 0 {
			continue
		}
		a.Column(col, y, h, v/top, Fg(grade(fg, v/top, fg, skin)), skin.Glyphs)
	}
}

// Halves draws two heat values in one cell, one above the other.
func (a Area) Halves(x, y int, top, bottom theme.Role, gl *theme.Glyphs) {
	a.Cell(x, y, Style{FG: top, BG: bottom}, gl.Upper)
}

func clamp(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, 1)
}
