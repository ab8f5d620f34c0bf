package panes

import (
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// LatencyPage selects the part of the Latency view that fills it.
type LatencyPage uint8

// The pages.
const (
	LatencyAll LatencyPage = iota
	LatencyDistributions
	LatencyOverTime
	LatencyPrompt
	NumLatencyPages
)

var latencyPages = [NumLatencyPages]string{"all", "distributions", "over time", "TTFT by prompt"}

// String returns the name of the page as in the border.
func (p LatencyPage) String() string { return latencyPages[p] }

// latencyPage draws any page but the first.
func (c *Ctx) latencyPage(a grid.Area, page LatencyPage, s *store.Snapshot, gap int) {
	switch page {
	case LatencyDistributions:
		c.distributionsPage(a, s, gap)
	case LatencyOverTime:
		h := a.H / 2
		c.itlChart(a.Sub(0, 0, a.W, h-gap), s)
		c.itlHeatmap(a.Sub(0, h, a.W, a.H-h), s)
	case LatencyPrompt:
		c.scatter(a, s)
	}
}

// distributionsPage draws warm TTFT above cold TTFT on one axis, and ITL beside or below them.
func (c *Ctx) distributionsPage(a grid.Area, s *store.Snapshot, gap int) {
	ttft, itl := a.Sub(0, 0, a.W, a.H*2/3), a.Sub(0, a.H*2/3, a.W, a.H-a.H*2/3)
	if a.W >= 104 {
		w := a.W*52/100 - 2
		ttft, itl = a.Sub(0, 0, w, a.H), a.Sub(w+3, 0, a.W-w-3, a.H)
	}
	h := ttft.H / 2
	c.coldAndWarm(ttft.Sub(0, 0, ttft.W, h-gap), ttft.Sub(0, h, ttft.W, ttft.H-h-gap), s)
	c.itlHistogram(itl, s)
}

// coldAndWarm draws the TTFT of warm and of cold requests on one axis.
func (c *Ctx) coldAndWarm(warm, cold grid.Area, s *store.Snapshot) {
	var far, farCold outliers
	c.Scratch.Values = appendTTFTs(c.Scratch.Values[:0], s, false, &far)
	c.Scratch.Cold = appendTTFTs(c.Scratch.Cold[:0], s, true, &farCold)
	lo, hi := logRange(c.Scratch.Values, c.Scratch.Cold)
	c.logHistogram(warm, "TTFT warm", c.withMedian(s.Latency.TTFT, "requests"), c.Scratch.Values, lo, hi, &far, targetStyle(s.Latency.Targets.TTFT))
	c.logHistogram(cold, "TTFT cold", c.withMedian(s.Latency.ColdTTFT, "requests, model load included"), c.Scratch.Cold, lo, hi, &farCold, func(float64) grid.Style {
		return grid.Fg(theme.SeriesPrefill)
	})
}

// withMedian appends the session median to words.
func (c *Ctx) withMedian(sums [metric.NumWindows]metric.Summary, words string) string {
	if sum := &sums[metric.Session]; sum.Count > 0 {
		return words + ", p50 " + metric.Duration(sum.P50)
	}
	return words
}

// appendTTFTs appends the TTFT of warm or cold requests in ns. It adds warm ones above the target and all cold ones to
// far.
func appendTTFTs(values []float64, s *store.Snapshot, cold bool, far *outliers) []float64 {
	target := float64(s.Latency.Targets.TTFT)
	for _, list := range [...][]*store.Request{s.Past, s.Requests} {
		for _, r := range list {
			ns := r.TTFT.V * 1e9
			if !r.TTFT.OK() || r.Cold != cold || ns <= 0 {
				continue
			}
			values = append(values, ns)
			if cold || target > 0 && ns > target {
				far.add(outlier{ns, r.ID, -1})
			}
		}
	}
	return values
}
