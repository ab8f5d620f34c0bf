package grid

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/guptarohit/asciigraph"

	"github.com/llmtop/llmtop/theme"
)

// Chart is a line chart with axes. It caches its plot until the data or the size changes.
type Chart struct {
	stamp int64
	w, h  int
	mode  [2]bool // colour, ASCII
	data  [][]float64
	text  string
}

// Curves is the content of a chart: Roles has one entry per series, At returns point i of n of a series (NaN: a gap;
// the newest is last), Label formats a value of a scale with that step, Top is the end of the scale, and Stamp changes
// with the data.
type Curves struct {
	N     int
	At    func(series, i int) float64
	Roles []theme.Role
	Label func(v, step float64) string
	Top   float64
	Stamp int64
}

// Draw plots one column per point, the newest at the right edge. Rows that the scale does not need stay empty at the
// top.
func (c *Chart) Draw(a Area, k Curves, skin *theme.Skin) {
	if a.W < 12 || a.H < 2 || k.N == 0 || !(k.Top >= 1/maxTop && k.Top <= 10*maxTop) {
		return
	}
	steps, rows := ticks(k.Top, a.H)
	a = a.Sub(0, a.H-rows, a.W, rows)
	wide := drawAxis(a, k, steps, skin.Glyphs)
	plot := a.Sub(wide, 0, a.W-wide, a.H)
	mode := [2]bool{skin.Colour(), skin.Glyphs.ASCII}
	if c.stamp != k.Stamp || c.w != plot.W || c.h != plot.H || c.mode != mode || c.text == "" {
		c.stamp, c.w, c.h, c.mode = k.Stamp, plot.W, plot.H, mode
		c.plot(k, plot.W, plot.H, skin)
	}
	y := 0
	for line := range strings.SplitSeq(c.text, "\n") {
		c.line(plot, y, line, k.Roles)
		y++
	}
}

// ticks divides a scale that ends at top into steps of whole rows: the finest with labels at least two rows apart and
// few unused rows.
func ticks(top float64, h int) (steps, rows int) {
	steps, rows = 1, h
	minUnused := h
	for _, n := range tidySteps(top) {
		unused := (h - 1) % n
		if (h-1)/n >= 2 && unused < minUnused {
			steps, rows, minUnused = n, h-unused, unused
		}
		if minUnused <= h/8 {
			break
		}
	}
	return steps, rows
}

// tidySteps returns divisions of a scale into steps with few digits, the finest first.
func tidySteps(top float64) []int {
	first := top / math.Pow(10, math.Floor(math.Log10(top)*1.0000001))
	switch int(math.Round(first)) {
	case 1, 10:
		return []int{5, 4, 2}
	case 3:
		return []int{6, 3, 2}
	case 5:
		return []int{5, 2}
	case 6:
		return []int{6, 3, 2}
	}
	return []int{4, 2}
}

// drawAxis draws the labels and the axis to the right of them, and returns the width of both.
func drawAxis(a Area, k Curves, steps int, gl *theme.Glyphs) int {
	step, wide := k.Top/float64(steps), 0
	for i := range steps + 1 {
		wide = max(wide, Width(k.Label(step*float64(i), step)))
	}
	for y := range a.H {
		a.Cell(wide+1, y, Fg(theme.Border), gl.Vertical)
	}
	for i := range steps + 1 {
		y := a.H - 1 - i*(a.H-1)/steps
		a.Right(wide, y, Fg(theme.Dim), k.Label(step*float64(i), step))
		a.Cell(wide+1, y, Fg(theme.Border), gl.TeeRight)
	}
	return wide + 2
}

// axisWidth is the width of the plot's text left of its points, with empty labels.
const axisWidth = 3

// plot collects the data and plots it without labels.
func (c *Chart) plot(k Curves, w, h int, skin *theme.Skin) {
	c.data = c.data[:0]
	for s := range k.Roles {
		row := make([]float64, w+1)
		for i := range row {
			row[i] = math.NaN()
			if j := k.N - len(row) + i; j >= 0 {
				row[i] = min(max(k.At(s, j), 0), k.Top)
			}
		}
		c.data = append(c.data, row)
	}
	c.text = asciigraph.PlotMany(c.data, asciigraph.Height(h-1), asciigraph.LowerBound(0), asciigraph.UpperBound(k.Top),
		asciigraph.YAxisValueFormatter(func(float64) string { return "" }), asciigraph.Offset(axisWidth),
		asciigraph.SeriesColors(seriesCodes(len(k.Roles))...), asciigraph.SeriesChars(seriesChars(len(k.Roles), skin)...))
}

// seriesCodes returns one colour per series in the plot's text; line maps them back to roles.
func seriesCodes(n int) []asciigraph.AnsiColor {
	codes := make([]asciigraph.AnsiColor, n)
	for i := range codes {
		codes[i] = asciigraph.AnsiColor(i + 1)
	}
	return codes
}

// seriesChars distinguishes series without colour: the first is a line, the others are dots.
func seriesChars(n int, skin *theme.Skin) []asciigraph.CharSet {
	sets := make([]asciigraph.CharSet, n)
	for i := range sets {
		sets[i] = asciigraph.DefaultCharSet
		switch {
		case skin.Glyphs.ASCII:
			sets[i] = asciigraph.CreateCharSet([]string{"*", "+", "o"}[i%3])
		case !skin.Colour() && i > 0:
			sets[i] = asciigraph.CreateCharSet([]string{"∙", "+"}[(i-1)%2])
		}
	}
	return sets
}

// line draws one row of the plot, without the text left of its points.
func (c *Chart) line(a Area, y int, s string, roles []theme.Role) {
	st, x := Fg(theme.Dim), -axisWidth
	for s != "" {
		if s[0] == 0x1b {
			end := strings.IndexByte(s, 'm')
			st = seriesStyle(s[2:end], roles)
			s = s[end+1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		if r != ' ' {
			a.Cell(x, y, st, r)
		}
		x++
	}
}

// seriesStyle maps a code of seriesCodes back to a style; the code "0" ends a series.
func seriesStyle(code string, roles []theme.Role) Style {
	if len(code) == 2 && code[0] == '3' {
		if i := int(code[1] - '1'); i >= 0 && i < len(roles) {
			return Fg(roles[i])
		}
	}
	return Fg(theme.Dim)
}

// Scales end between 1/maxTop and maxTop, far from the limits of floating point; larger values are drawn at the top.
const maxTop = 1e300

// NiceTop returns the end of a scale for values up to v: a power of ten times 1, 2, 3, 4, 5, 6 or 8, which divide into
// steps with few digits.
func NiceTop(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	v = min(max(v, 1/maxTop), maxTop)
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range [...]float64{1, 2, 3, 4, 5, 6, 8, 10} {
		if v <= m*p*1.0000001 {
			return m * p
		}
	}
	return 10 * p
}
