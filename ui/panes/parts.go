package panes

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// leastParts is how many rows the table of parts is worth drawing for.
const leastParts = 3

// drawParts draws a request's TTFT part by part, each beginning where the one before ends, with its length and its share.
// Where not all have a row, the shortest are left out.
func drawParts(a grid.Area, r *store.Request, c *Ctx) {
	const names, numbers = 13, 18
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	if bar.W < 4 {
		return
	}
	least := kthLongest(r.Parts, a.H)
	y, begin := 0, 0.0
	for _, p := range r.Parts {
		from := int(begin * float64(bar.W))
		begin += p.Share
		if p.Dur < least || y == a.H {
			continue
		}
		k := look(p.Stage)
		a.Cell(0, y, grid.Fg(k.role), c.swatch(k))
		a.Text(2, y, dim, k.name)
		bar.Fill(min(from, bar.W-1), y, max(int(math.Round(p.Share*float64(bar.W))), 1), grid.Fg(k.role), c.fill(k))
		a.Right(a.W-8, y, data, metric.Duration(int64(p.Dur)))
		a.Right(a.W-2, y, text, metric.Percent(p.Share))
		y++
	}
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

// kthLongest is the length of the k-th longest part, 0 if there are fewer.
func kthLongest(parts []store.Part, k int) time.Duration {
	if k >= len(parts) {
		return 0
	}
	lengths := make([]time.Duration, len(parts))
	for i, p := range parts {
		lengths[i] = p.Dur
	}
	slices.SortFunc(lengths, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	return lengths[k-1]
}
