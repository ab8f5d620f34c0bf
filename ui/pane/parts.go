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
	keep := Unfolded(len(parts), a.H)
	least, rest, folded := KthLongest(parts, keep), TimePart{}, 0
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
	for _, p := range parts {
		from, at := min(int(math.Round(begin*float64(bar.W))), bar.W-1), y
		begin += p.Share
		if p.Dur < least || y == keep {
			rest.Dur, rest.Share, rest.mark, at = rest.Dur+p.Dur, rest.Share+p.Share, p.mark, keep
			folded++
		} else {
			write(y, &p)
			y++
		}
		bar.Fill(from, at, max(int(math.Round(begin*float64(bar.W)))-from, 1), grid.Fg(p.role), p.Fill)
	}
	if folded > 0 {
		if rest.mark != 0 {
			rest.mark = ' '
		}
		rest.Name = FoldedName(folded, keep)
		write(keep, &rest)
	}
}

// Unfolded returns how many of n parts have a row of their own among a number of rows: the others share the last one.
func Unfolded(n, rows int) int {
	if n <= rows {
		return n
	}
	return max(rows-1, 0)
}

// FoldedName names the row that parts share below others.
func FoldedName(folded, others int) string {
	if others == 0 {
		return strconv.Itoa(folded) + " parts"
	}
	return strconv.Itoa(folded) + " shorter"
}

// KthLongest returns the length of the k-th longest part, 0 if there are fewer.
func KthLongest(parts []TimePart, k int) time.Duration {
	if k >= len(parts) || k < 1 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(parts), func(a, b TimePart) int { return cmp.Compare(b.Dur, a.Dur) })
	return sorted[k-1].Dur
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
