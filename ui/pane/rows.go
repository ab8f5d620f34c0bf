package pane

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// nameWidth and valueWidth are the widths of left-aligned names and right-aligned values in panes that list numbers.
const (
	NameWidth  = 9
	ValueWidth = 7
)

// RowWriter writes named values one below another until the area is full.
type RowWriter struct {
	A grid.Area
	Y int
}

// Next writes a name and returns the area to its right; an empty one if the rows are used up.
func (r *RowWriter) Next(name string) (rest grid.Area) {
	if r.Y < r.A.H {
		r.A.Text(0, r.Y, Dim, name)
		rest = r.A.Sub(NameWidth, r.Y, r.A.W-NameWidth, 1)
		r.Y++
	}
	return rest
}

// Words writes a name and words beside it.
func (r *RowWriter) Words(f *Frame, name, words string) {
	a := r.Next(name)
	a.Elide(1, 0, a.W-1, Plain, words, f.Skin.Glyphs.Ellipsis)
}

// PutReading writes a reading with its unit, or why it is absent, and returns the next column.
func PutReading(a grid.Area, r event.Reading, f func(float64) string, unit string, st grid.Style) int {
	if !r.OK() {
		return a.Text(1, 0, Dim, r.Origin.String()) + 2
	}
	a.Right(ValueWidth, 0, st, f(r.V))
	return ValueWidth + 1 + a.Text(ValueWidth+1, 0, Dim, unit) + 1
}

// Trend fills the remaining rows, if there are enough, with one series, one column per second. top is the scale; 0 fits
// the values shown.
func (r *RowWriter) Trend(f *Frame, name string, n int, at func(int) float64, top float64, line, area theme.Role) {
	h := r.A.H - r.Y - 1
	if h < 2 || n < 2 {
		return
	}
	n, first := min(n, r.A.W-NameWidth), max(n-(r.A.W-NameWidth), 0)
	shown := func(i int) float64 { return at(first + i) }
	if top == 0 {
		top = ScaleTop(n, shown)
	}
	if top == 0 {
		return // nothing was measured
	}
	r.A.Text(0, r.A.H-1, Dim, name)
	r.A.Text(0, r.Y+1, Dim, metric.Count(top))
	if top <= 1 {
		r.A.Fill(0, r.Y+1, NameWidth, Dim, ' ')
		r.A.Text(0, r.Y+1, Dim, metric.Percent(top))
	}
	r.A.Filled(NameWidth, r.A.H-1, r.A.W-NameWidth, h, n, shown, top, line, area, f.Skin)
}

// RateOrGap returns a value of one second, or NaN, a gap in a chart, if the engine reported nothing.
func RateOrGap(p *store.RatePoint, v float64) float64 {
	if p.Silent {
		return math.NaN()
	}
	return v
}

// ScaleTop returns the scale of a series: a round number at or above all values.
func ScaleTop(n int, at func(int) float64) float64 {
	top := 0.0
	for i := range n {
		if v := at(i); !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	return grid.NiceTop(top)
}

// DrawCurves draws curves with a column per second, the newest at time last, and the user's marks. Without a top, the
// scale fits the values; without a label, its values are formatted in units.
func DrawCurves(a grid.Area, f *Frame, last event.Time, units []Unit, k grid.Curves) {
	if k.Top == 0 {
		for series := range k.Roles {
			k.Top = max(k.Top, ScaleTop(k.N, func(i int) float64 { return k.At(series, i) }))
		}
	}
	if k.Label == nil {
		k.Label = AxisLabel(units, k.Top)
	}
	k.Draw(a, f.Skin)
	ChartMarks(a.Sub(chartAxisWidth, 0, a.W-chartAxisWidth, a.H), f, last, k.N)
}

// DrawRatesChart draws prefill and decode throughput per second.
func DrawRatesChart(a grid.Area, f *Frame, pts []store.RatePoint) {
	l := a.Line(0, 0)
	l.Put(Heading, "Tokens per second").Gap(2).Put(grid.Fg(theme.SeriesDecode), "decode").Gap(2).Put(grid.Fg(theme.SeriesPrefill), "prefill")
	at := func(k, i int) float64 {
		if k == 0 {
			return RateOrGap(&pts[i], pts[i].Prefill)
		}
		return RateOrGap(&pts[i], pts[i].Decode)
	}
	DrawCurves(a.Sub(0, 1, a.W, a.H-1), f, pts[len(pts)-1].At, CountAxis, grid.Curves{
		N: len(pts), At: at, Roles: []theme.Role{theme.SeriesPrefill, theme.SeriesDecode}, Log: f.LogAxis,
	})
}

// FitReading writes a reading between two dim texts if it is known and all of it fits, and reports whether it did.
func FitReading(l *grid.Line, before string, r event.Reading, format func(float64) string, after string) bool {
	return r.OK() && l.Fit(grid.Piece{Style: Dim, Words: before}, grid.Piece{Style: Plain, Words: format(r.V)}, grid.Piece{Style: Dim, Words: after})
}
