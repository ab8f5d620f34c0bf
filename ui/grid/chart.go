package grid

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/theme"
)

// Curves is a line chart with axes: in Braille dots, four per row, or in characters where the glyphs are ASCII. Roles has
// one entry per series, At returns point i of n of a series (NaN: a gap; the newest is last), Label formats a value of a
// scale with that step (0: a value of a log axis), and Top is the end of the scale.
type Curves struct {
	N     int
	At    func(series, i int) float64
	Roles []theme.Role
	Label func(v, step float64) string
	Top   float64
	Log   bool             // log axis; its lowest row is 0
	Whole bool             // of counts: no labels between them
	Fill  bool             // between the first two series, or below the only one
	Stall func(i int) bool // whether to mark a point of the first series as a stall; nil: none
}

// Draw plots one column per point, the newest at the right edge. Rows that the scale does not need stay empty at the
// top.
func (k Curves) Draw(a Area, skin *theme.Skin) {
	if a.W < 12 || a.H < 2 || k.N == 0 || !(k.Top >= 1/maxTop && k.Top <= 10*maxTop) {
		return
	}
	s := scale{rows: a.H, top: k.Top}
	step := 0.0
	var labels []float64
	if k.Log && a.H >= 3 {
		s.low = k.low(a.W)
		labels = s.decades()
	} else {
		var steps int
		steps, s.rows = ticks(k.Top, a.H)
		step = k.Top / float64(steps)
		for i := range steps + 1 {
			labels = append(labels, step*float64(i))
		}
	}
	if k.Whole {
		labels = slices.DeleteFunc(labels, func(v float64) bool { return v != math.Trunc(v) })
		step = math.Ceil(step)
	}
	a = a.Sub(0, a.H-s.rows, a.W, s.rows)
	wide := k.drawAxis(a, s, labels, step, skin.Glyphs)
	plot := a.Sub(wide, 0, a.W-wide, a.H)
	if skin.Glyphs.ASCII {
		k.drawText(plot, s)
	} else {
		k.drawDots(plot, s, skin)
	}
	if k.Stall != nil {
		k.drawStalls(plot, s, skin.Glyphs)
	}
}

// drawStalls marks points above their dots, or in the first row.
func (k *Curves) drawStalls(a Area, s scale, gl *theme.Glyphs) {
	for x := max(a.W-k.N, 0); x < a.W; x++ {
		i := k.N - a.W + x
		if v := k.At(0, i); !math.IsNaN(v) && k.Stall(i) {
			a.Cell(x, max(s.dot(v)/dotRows-1, 0), Fg(theme.Bad).With(Bold), gl.Stall)
		}
	}
}

// scale places values on rows of cells. The middle of the lowest row is 0, that of the highest is top.
type scale struct {
	rows int
	top  float64
	low  float64 // of a log axis: the value on the second lowest row; 0: linear
}

// rise returns how many rows a value is above 0, clamped to the scale.
func (s scale) rise(v float64) float64 {
	switch {
	case math.IsNaN(v):
		return v
	case v <= 0:
		return 0
	case s.low > 0:
		return 1 + clamp(math.Log10(min(v, s.top)/s.low)/math.Log10(s.top/s.low))*float64(s.rows-2)
	}
	return clamp(v/s.top) * float64(s.rows-1)
}

// dot returns the row of dots of a value, counted from the top. Only 0 is on the dot of 0.
func (s scale) dot(v float64) int {
	y := s.dotAt(s.rise(v))
	if v > 0 {
		y = min(y, s.dotAt(0)-1)
	}
	return y
}

// dotAt returns the row of dots at a height in rows.
func (s scale) dotAt(rise float64) int {
	return int((float64(s.rows) - 0.5 - rise) * dotRows)
}

// maxDecades bounds the range of a log axis.
const maxDecades = 12

// low returns the start of a log axis for the newest n points: the power of ten at or below the smallest value above 0.
func (k *Curves) low(n int) float64 {
	least := k.Top / 2
	for s := range k.Roles {
		for i := max(k.N-n, 0); i < k.N; i++ {
			if v := k.At(s, i); v > 0 {
				least = min(least, v)
			}
		}
	}
	return math.Pow10(int(math.Floor(math.Log10(max(least, k.Top*math.Pow10(-maxDecades))))))
}

// decades returns 0 and the powers of ten of a log axis, at most one per row.
func (s scale) decades() []float64 {
	to := []float64{0}
	n := math.Log10(s.top / s.low)
	each := max(math.Ceil(n/float64(max(s.rows-2, 1))-1e-9), 1)
	first := math.Round(math.Log10(s.low))
	for i := 0.0; i <= n+1e-9; i += each {
		to = append(to, math.Pow10(int(first+i)))
	}
	return to
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

// drawAxis draws the labels and the axis to the right of them, and returns the width of both. It omits a label equal to
// the one below.
func (k *Curves) drawAxis(a Area, s scale, labels []float64, step float64, gl *theme.Glyphs) int {
	wide := 0
	for _, v := range labels {
		wide = max(wide, Width(k.Label(v, step)))
	}
	for y := range a.H {
		a.Cell(wide+1, y, Fg(theme.Border), gl.Vertical)
	}
	last := ""
	for _, v := range labels {
		y := s.dotAt(s.rise(v)) / dotRows
		if label := k.Label(v, step); label != last {
			a.Right(wide, y, Fg(theme.Dim), label)
			a.Cell(wide+1, y, Fg(theme.Border), gl.TeeRight)
			last = label
		}
	}
	return wide + 2
}

// drawText plots each series in a character of its own: in a column from the point before to its own.
func (k *Curves) drawText(plot Area, s scale) {
	row := func(series, i int) (y int, ok bool) {
		if i < 0 {
			return 0, false
		}
		rise := s.rise(k.At(series, i))
		return s.rows - 1 - int(math.Round(rise)), !math.IsNaN(rise)
	}
	for series, role := range k.Roles {
		for x := range plot.W {
			i := k.N - plot.W + x
			from, before := row(series, i-1)
			to, here := row(series, i)
			switch {
			case !before && !here: // a gap
				continue
			case !before:
				from = to
			case !here:
				to = from
			}
			for y := min(from, to); y <= max(from, to); y++ {
				plot.Cell(x, y, Fg(role), rune("*+o"[series%3]))
			}
		}
	}
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
