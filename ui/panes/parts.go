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

// leastParts is how many rows the table of parts is worth drawing for.
const leastParts = 3

// slice is one part of a time.
type slice struct {
	name  string
	dur   time.Duration
	share float64 // of the whole
	role  theme.Role
	fill  rune
	mark  rune // before the name, 0 for none
}

// drawSlices draws parts of a whole one under another, each beginning where the one before ends, with its share and its
// length. Where not all have a row, the shortest are left out.
func drawSlices(a grid.Area, parts []slice) {
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

// kthLongest is the length of the k-th longest part, 0 if there are fewer.
func kthLongest(parts []slice, k int) time.Duration {
	if k >= len(parts) || k < 1 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(parts), func(a, b slice) int { return cmp.Compare(b.dur, a.dur) })
	return sorted[k-1].dur
}

// drawParts draws a request's TTFT part by part.
func drawParts(a grid.Area, r *store.Request, c *Ctx) {
	parts := make([]slice, 0, len(r.Parts))
	for _, p := range r.Parts {
		k := look(p.Stage)
		parts = append(parts, slice{k.name, p.Dur, p.Share, k.role, c.fill(k), c.swatch(k)})
	}
	drawSlices(a, parts)
}

// fill is what a component's bar is made of, swatch its mark in a legend: without colour the two are the same.
func (c *Ctx) fill(k component) rune {
	if gl := c.Skin.Glyphs; c.Skin.Colour() && !gl.ASCII {
		return gl.Bar
	}
	return c.Skin.Glyphs.Fills[k.fill]
}

func (c *Ctx) swatch(k component) rune {
	if gl := c.Skin.Glyphs; c.Skin.Colour() && !gl.ASCII {
		return gl.Swatch
	}
	return c.Skin.Glyphs.Fills[k.fill]
}
