package pane

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// LeastParts is the minimum number of rows for the table of parts.
const LeastParts = 3

// TimePart is one part of a duration.
type TimePart struct {
	Name  string
	Dur   time.Duration
	Share float64 // of the whole duration
	role  theme.Role
	Fill  rune
	mark  rune // glyph before the name; 0: none
}

// DrawTimeParts draws parts of a duration one below another, each starting where the previous ends, with its share and
// length. Where not all fit, the shortest share the last row.
func DrawTimeParts(a grid.Area, parts []TimePart) {
	const names, numbers = 13, 18
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	own, name := Unfolded(len(parts), func(i int) int64 { return int64(parts[i].Dur) }, a.H)
	rest := TimePart{Name: name}
	write := func(y int, p *TimePart) {
		x := 0
		if p.mark != 0 {
			a.Cell(0, y, grid.Fg(p.role), p.mark)
			x = 2
		}
		a.Text(x, y, Dim, p.Name)
		a.Right(a.W-11, y, Plain, metric.Percent(p.Share))
		a.Right(a.W-2, y, Data, metric.Duration(int64(p.Dur)))
	}
	y, begin := 0, 0.0
	for i, p := range parts {
		from, at := min(int(math.Round(begin*float64(bar.W))), bar.W-1), y
		begin += p.Share
		if own[i] {
			write(y, &p)
			y++
		} else {
			rest.Dur, rest.Share, rest.mark, at = rest.Dur+p.Dur, rest.Share+p.Share, p.mark, a.H-1
		}
		bar.Fill(from, at, max(int(math.Round(begin*float64(bar.W)))-from, 1), grid.Fg(p.role), p.Fill)
	}
	if rest.Name != "" {
		if rest.mark != 0 {
			rest.mark = ' '
		}
		write(a.H-1, &rest)
	}
}

// Unfolded returns which of n parts have a row of their own among a number of rows, the longest, and the name of the last
// row, which the others share; "" if there are none.
func Unfolded(n int, length func(i int) int64, rows int) (own []bool, rest string) {
	own, order, keep := make([]bool, n), make([]int, n), n
	if n > rows {
		keep = max(rows-1, 0)
		rest = strconv.Itoa(n-keep) + " shorter"
		if keep == 0 {
			rest = strconv.Itoa(n) + " parts"
		}
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(length(j), length(i)) })
	for _, i := range order[:keep] {
		own[i] = true
	}
	return own, rest
}

// DrawParts draws the components of a request's TTFT.
func DrawParts(a grid.Area, f *Frame, r *store.Request) {
	parts := make([]TimePart, 0, len(r.Parts))
	for _, p := range r.Parts {
		k := ComponentLook(p.Stage)
		parts = append(parts, TimePart{k.Name, p.Dur, p.Share, k.Role, PartFill(f, k), PartSwatch(f, k)})
	}
	DrawTimeParts(a, parts)
}

// PartFill returns the glyph of the bar of a component. Without colour it equals the glyph of swatch.
func PartFill(f *Frame, k Component) rune {
	if gl := f.Skin.Glyphs; f.Skin.Colour() && !gl.ASCII {
		return gl.Bar
	}
	return f.Skin.Glyphs.Fills[k.Fill]
}

// PartSwatch returns the glyph of a component in a legend.
func PartSwatch(f *Frame, k Component) rune {
	if gl := f.Skin.Glyphs; f.Skin.Colour() && !gl.ASCII {
		return gl.Swatch
	}
	return f.Skin.Glyphs.Fills[k.Fill]
}
