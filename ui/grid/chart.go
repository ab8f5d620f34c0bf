package grid

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/guptarohit/asciigraph"

	"github.com/llmtop/llmtop/theme"
)

// Chart is a line chart with axes. It keeps its last plot and makes a new one only when its data or its size changed.
type Chart struct {
	stamp int64
	w, h  int
	looks [2]bool
	data  [][]float64
	text  string
}

// Curves is what a chart shows: Roles has one entry a series, At gives point i of n of a series (NaN is a gap, newest
// last), Label writes a value on the axis, Top is the end of the scale, Stamp changes with the data.
type Curves struct {
	N     int
	At    func(series, i int) float64
	Roles []theme.Role
	Label func(float64) string
	Top   float64
	Stamp int64
}

// Draw plots one column a point, the newest at the right edge.
func (c *Chart) Draw(a Area, k Curves, skin *theme.Skin) {
	if a.W < 12 || a.H < 2 || k.N == 0 || !(k.Top > 0) {
		return
	}
	if a.H > 4 && a.H%2 == 0 { // an odd number of rows puts the middle of the scale on one of them
		a = a.Sub(0, 1, a.W, a.H-1)
	}
	looks := [2]bool{skin.Colour(), skin.Glyphs.ASCII}
	if c.stamp != k.Stamp || c.w != a.W || c.h != a.H || c.looks != looks || c.text == "" {
		c.stamp, c.w, c.h, c.looks = k.Stamp, a.W, a.H, looks
		c.plot(k, a.W, a.H, skin)
	}
	y := 0
	for line := range strings.SplitSeq(c.text, "\n") {
		c.line(a, y, line, k.Roles, skin)
		y++
	}
}

// plot fills the data and has it plotted; row labels take the width of the widest.
func (c *Chart) plot(k Curves, w, h int, skin *theme.Skin) {
	wide := 0
	for i := range h {
		wide = max(wide, Width(k.Label(k.Top*float64(i)/float64(h-1))))
	}
	cols := w - wide - 3
	c.data = c.data[:0]
	for s := range k.Roles {
		row := make([]float64, cols)
		for i := range row {
			row[i] = math.NaN()
			if j := k.N - cols + i; j >= 0 {
				row[i] = k.At(s, j)
			}
		}
		c.data = append(c.data, row)
	}
	c.text = asciigraph.PlotMany(c.data, asciigraph.Height(h-1), asciigraph.LowerBound(0), asciigraph.UpperBound(k.Top),
		asciigraph.YAxisValueFormatter(k.Label), asciigraph.SeriesColors(seriesCodes(len(k.Roles))...),
		asciigraph.SeriesChars(seriesChars(len(k.Roles), skin)...))
}

// seriesCodes are colours that stand for series in the plot's text; line turns them into roles.
func seriesCodes(n int) []asciigraph.AnsiColor {
	codes := make([]asciigraph.AnsiColor, n)
	for i := range codes {
		codes[i] = asciigraph.AnsiColor(i + 1)
	}
	return codes
}

// seriesChars tells series apart without colour: the first as a line, the others as dots.
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

// line draws one row of the plot. The ends of the scale, its middle, and its quarters where there is
// room, are labelled.
func (c *Chart) line(a Area, y int, s string, roles []theme.Role, skin *theme.Skin) {
	st, x, axis := Fg(theme.Dim), 0, false
	step := max((a.H-1)/2, 1)
	if step >= 4 && step%2 == 0 {
		step /= 2
	}
	labelled := y%step == 0
	for s != "" {
		if s[0] == 0x1b {
			end := strings.IndexByte(s, 'm')
			st = seriesStyle(s[2:end], roles)
			s = s[end+1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		cell := st
		if !axis {
			axis = r == '┤' || r == '┼'
			r, cell = axisRune(r, axis, labelled, skin.Glyphs)
		}
		if r != ' ' {
			a.Cell(x, y, cell, r)
		}
		x++
	}
}

// axisRune is what stands left of the plot: a label, or the axis with or without its tick.
func axisRune(r rune, axis, labelled bool, gl *theme.Glyphs) (rune, Style) {
	switch {
	case axis && labelled:
		return gl.TeeRight, Fg(theme.Border)
	case axis:
		return gl.Vertical, Fg(theme.Border)
	case labelled:
		return r, Fg(theme.Dim)
	}
	return ' ', Fg(theme.Dim)
}

// seriesStyle turns the code of seriesCodes back into a style; the code "0" ends a series.
func seriesStyle(code string, roles []theme.Role) Style {
	if len(code) == 2 && code[0] == '3' {
		if i := int(code[1] - '1'); i >= 0 && i < len(roles) {
			return Fg(roles[i])
		}
	}
	return Fg(theme.Dim)
}

// NiceTop is the end of a scale for values up to v: 1, 1.5, 2, 3, 5 or 7 times a power of ten, so that it rarely moves.
func NiceTop(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range [...]float64{1, 1.5, 2, 3, 5, 7, 10} {
		if v <= m*p*1.0000001 {
			return m * p
		}
	}
	return 10 * p
}
