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
// last), Label writes a value of a scale with that step, Top is the end of the scale, Stamp changes with the data.
type Curves struct {
	N     int
	At    func(series, i int) float64
	Roles []theme.Role
	Label func(v, step float64) string
	Top   float64
	Stamp int64
}

// Draw plots one column a point, the newest at the right edge. Rows that the scale has no use for stay empty at the top.
func (c *Chart) Draw(a Area, k Curves, skin *theme.Skin) {
	if a.W < 12 || a.H < 2 || k.N == 0 || !(k.Top > 0) {
		return
	}
	steps, rows := ticks(k.Top, a.H)
	a = a.Sub(0, a.H-rows, a.W, rows)
	wide := drawAxis(a, k, steps, skin.Glyphs)
	plot := a.Sub(wide, 0, a.W-wide, a.H)
	looks := [2]bool{skin.Colour(), skin.Glyphs.ASCII}
	if c.stamp != k.Stamp || c.w != plot.W || c.h != plot.H || c.looks != looks || c.text == "" {
		c.stamp, c.w, c.h, c.looks = k.Stamp, plot.W, plot.H, looks
		c.plot(k, plot.W, plot.H, skin)
	}
	y := 0
	for line := range strings.SplitSeq(c.text, "\n") {
		c.line(plot, y, line, k.Roles)
		y++
	}
}

// ticks divides a scale that ends at top into steps of whole rows: the finest for which labels stand on every second row at
// the closest and which leaves few rows unused.
func ticks(top float64, h int) (steps, rows int) {
	steps, rows = 1, h
	lost := h
	for _, n := range tidySteps(top) {
		left := (h - 1) % n
		if (h-1)/n >= 2 && left < lost {
			steps, rows, lost = n, h-left, left
		}
		if lost <= h/8 {
			break
		}
	}
	return steps, rows
}

// tidySteps are the divisions of a scale that give steps of few digits, the finest first.
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

// drawAxis draws the labels and the axis right of them, and returns the width of both.
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

// axisWidth is what the plot's text has left of its points where labels are empty.
const axisWidth = 3

// plot fills the data and has it plotted, without labels.
func (c *Chart) plot(k Curves, w, h int, skin *theme.Skin) {
	c.data = c.data[:0]
	for s := range k.Roles {
		row := make([]float64, w+1)
		for i := range row {
			row[i] = math.NaN()
			if j := k.N - len(row) + i; j >= 0 {
				row[i] = min(k.At(s, j), k.Top)
			}
		}
		c.data = append(c.data, row)
	}
	c.text = asciigraph.PlotMany(c.data, asciigraph.Height(h-1), asciigraph.LowerBound(0), asciigraph.UpperBound(k.Top),
		asciigraph.YAxisValueFormatter(func(float64) string { return "" }), asciigraph.Offset(axisWidth),
		asciigraph.SeriesColors(seriesCodes(len(k.Roles))...), asciigraph.SeriesChars(seriesChars(len(k.Roles), skin)...))
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

// line draws one row of the plot, without what stands left of its points.
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

// seriesStyle turns the code of seriesCodes back into a style; the code "0" ends a series.
func seriesStyle(code string, roles []theme.Role) Style {
	if len(code) == 2 && code[0] == '3' {
		if i := int(code[1] - '1'); i >= 0 && i < len(roles) {
			return Fg(roles[i])
		}
	}
	return Fg(theme.Dim)
}

// NiceTop is the end of a scale for values up to v: a power of ten times 1, 2, 3, 4, 5, 6 or 8, which divide into tidy steps.
func NiceTop(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range [...]float64{1, 2, 3, 4, 5, 6, 8, 10} {
		if v <= m*p*1.0000001 {
			return m * p
		}
	}
	return 10 * p
}
