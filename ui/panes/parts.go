package panes

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// leastParts is the minimum number of rows for the table of parts.
const leastParts = 3

// timePart is one part of a duration.
type timePart struct {
	name  string
	dur   time.Duration
	share float64 // of the whole duration
	role  theme.Role
	fill  rune
	mark  rune // glyph before the name; 0: none
}

// drawTimeParts draws parts of a duration one below another, each starting where the previous ends, with its share and
// length. Where not all fit, the shortest are omitted.
func drawTimeParts(a grid.Area, parts []timePart) {
	const names, numbers = 13, 18
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	least := kthLongest(parts, a.H)
	y, begin := 0, 0.0
	for _, p := range parts {
		from := int(math.Round(begin * float64(bar.W)))
		begin += p.share
		if p.dur < least || y == a.H {
			continue
		}
		x := 0
		if p.mark != 0 {
			a.Cell(0, y, grid.Fg(p.role), p.mark)
			x = 2
		}
		a.Text(x, y, dim, p.name)
		from = min(from, bar.W-1)
		bar.Fill(from, y, max(int(math.Round(begin*float64(bar.W)))-from, 1), grid.Fg(p.role), p.fill)
		a.Right(a.W-11, y, text, metric.Percent(p.share))
		a.Right(a.W-2, y, data, metric.Duration(int64(p.dur)))
		y++
	}
}

// kthLongest returns the length of the k-th longest part, 0 if there are fewer.
func kthLongest(parts []timePart, k int) time.Duration {
	if k >= len(parts) || k < 1 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(parts), func(a, b timePart) int { return cmp.Compare(b.dur, a.dur) })
	return sorted[k-1].dur
}

// drawParts draws the components of a request's TTFT.
func drawParts(a grid.Area, r *store.Request, c *Ctx) {
	parts := make([]timePart, 0, len(r.Parts))
	for _, p := range r.Parts {
		k := componentLook(p.Stage)
		parts = append(parts, timePart{k.name, p.Dur, p.Share, k.role, c.fill(k), c.swatch(k)})
	}
	drawTimeParts(a, parts)
}

// fill returns the glyph of the bar of a component. Without colour it equals the glyph of swatch.
func (c *Ctx) fill(k component) rune {
	if gl := c.Skin.Glyphs; c.Skin.Colour() && !gl.ASCII {
		return gl.Bar
	}
	return c.Skin.Glyphs.Fills[k.fill]
}

// swatch returns the glyph of a component in a legend.
func (c *Ctx) swatch(k component) rune {
	if gl := c.Skin.Glyphs; c.Skin.Colour() && !gl.ASCII {
		return gl.Swatch
	}
	return c.Skin.Glyphs.Fills[k.fill]
}
