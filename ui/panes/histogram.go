package panes

import (
	"math"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// mostGaps bounds the gaps of a histogram: those of the newest requests.
const mostGaps = 8192

// ttftHistogram shows how the TTFT of the warm requests that are kept are spread.
func (c *Ctx) ttftHistogram(a grid.Area, s *store.Snapshot) {
	values := c.Memory.values[:0]
	for _, list := range [...][]*store.Request{s.Past, s.Requests} {
		for _, r := range list {
			if r.TTFT.OK() && !r.Cold && r.TTFT.V > 0 {
				values = append(values, r.TTFT.V*1e9)
			}
		}
	}
	c.Memory.values = values
	target := float64(s.Latency.Target)
	c.logHistogram(a, "TTFT", "warm requests", values, func(ns float64) grid.Style {
		if target > 0 && ns > target {
			return bad
		}
		return grid.Fg(theme.SeriesDecode)
	})
}

// itlHistogram shows how the last gaps between tokens are spread.
func (c *Ctx) itlHistogram(a grid.Area, s *store.Snapshot) {
	values := c.Memory.values[:0]
	for _, r := range s.Requests {
		for _, g := range r.Gaps[max(len(r.Gaps)-mostGaps+len(values), 0):] {
			if g > 0 {
				values = append(values, float64(g))
			}
		}
		if len(values) >= mostGaps {
			break
		}
	}
	c.Memory.values = values
	median := float64(s.Latency.ITL[metric.Session].P50)
	c.logHistogram(a, "ITL", "gaps, the last ones", values, func(ns float64) grid.Style { return gapStyle(ns / max(median, 1)) })
}

// logHistogram draws times in ns as columns on a logarithmic axis; style colours a column by the time that it stands for, so that what
// lies beyond a limit is seen even where it is a single sample.
func (c *Ctx) logHistogram(a grid.Area, name, of string, values []float64, style func(ns float64) grid.Style) {
	if a.H < 3 || a.W < 20 {
		return
	}
	l := a.Line(0, 0)
	l.Put(head, name).Gap(2).Put(dim, metric.Count(float64(len(values)))+" "+of+"; logarithmic")
	if len(values) == 0 {
		return
	}
	lo, hi := math.Inf(1), 0.0
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	lo, hi = lo/1.05, hi*1.05
	if hi < 2*lo {
		mid := math.Sqrt(lo * hi)
		lo, hi = mid/math.Sqrt2, mid*math.Sqrt2
	}
	plot := a.Sub(0, 1, a.W, a.H-2)
	scale := float64(plot.W) / math.Log(hi/lo)
	bins := append(c.Memory.bins[:0], make([]int, plot.W)...)
	c.Memory.bins = bins
	most := 0
	for _, v := range values {
		i := min(max(int(math.Log(v/lo)*scale), 0), plot.W-1)
		bins[i]++
		most = max(most, bins[i])
	}
	for x, n := range bins {
		if n > 0 {
			at := lo * math.Exp((float64(x)+0.5)/scale)
			plot.Column(x, plot.H-1, plot.H, float64(n)/float64(most), style(at), c.Skin.Glyphs)
		}
	}
	l.Fit(grid.Piece{Style: dim, Words: ", highest " + metric.Count(float64(most))})
	drawLogAxis(a.Sub(0, a.H-1, a.W, 1), lo, hi)
}

// drawLogAxis labels 1, 2 and 5 of every power of ten where there is room.
func drawLogAxis(a grid.Area, lo, hi float64) {
	scale, free := float64(a.W)/math.Log(hi/lo), 0
	for p := math.Pow(10, math.Floor(math.Log10(lo))); p <= hi; p *= 10 {
		for _, m := range [...]float64{1, 2, 5} {
			v := p * m
			if v < lo || v > hi {
				continue
			}
			x, words := int(math.Log(v/lo)*scale), label(timeAxis, v)(v, v)
			if x >= free && x+1+grid.Width(words) <= a.W {
				a.Cell(x, 0, grid.Fg(theme.Border), '|')
				a.Text(x+1, 0, dim, words)
				free = x + grid.Width(words) + 2
			}
		}
	}
}
