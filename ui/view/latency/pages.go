package latency

import (
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// Page selects the part of the Latency view that fills it.
type Page uint8

// The pages.
const (
	PageAll Page = iota
	PageDistributions
	PageOverTime
	PagePrompt
	NumPages
)

var latencyPages = [NumPages]string{"all", "distributions", "over time", "TTFT by prompt"}

// String returns the name of the page as in the border.
func (p Page) String() string { return latencyPages[p] }

// latencyPage draws any page but the first.
func latencyPage(a grid.Area, s *store.Snapshot, f *pane.Frame, page Page, gap int) {
	switch page {
	case PageDistributions:
		distributionsPage(a, s, f, gap)
	case PageOverTime:
		h := a.H / 2
		itlChart(a.Sub(0, 0, a.W, h-gap), s, f)
		itlHeatmap(a.Sub(0, h, a.W, a.H-h), s, f)
	case PagePrompt:
		scatter(a, s, f)
	}
}

// distributionsPage draws warm TTFT above cold TTFT on one axis, and ITL beside or below them.
func distributionsPage(a grid.Area, s *store.Snapshot, f *pane.Frame, gap int) {
	ttft, itl := a.Sub(0, 0, a.W, a.H*2/3), a.Sub(0, a.H*2/3, a.W, a.H-a.H*2/3)
	if a.W >= 104 {
		w := a.W*52/100 - 2
		ttft, itl = a.Sub(0, 0, w, a.H), a.Sub(w+3, 0, a.W-w-3, a.H)
	}
	h := ttft.H / 2
	coldAndWarm(ttft.Sub(0, 0, ttft.W, h-gap), ttft.Sub(0, h, ttft.W, ttft.H-h-gap), s, f)
	itlHistogram(itl, s, f)
}

// coldAndWarm draws the TTFT of warm and of cold requests on one axis.
func coldAndWarm(warm, cold grid.Area, s *store.Snapshot, f *pane.Frame) {
	var far, farCold outliers
	values, colds := ttfts(s, f.Window, false, &far), ttfts(s, f.Window, true, &farCold)
	lo, hi := logRange(values, colds)
	logHistogram(warm, f, "TTFT warm", []string{withMedian(len(values), &s.Latency.Of[store.TTFT][f.Window])}, values, lo, hi, &far, targetStyle(s.Latency.Targets.TTFT))
	logHistogram(cold, f, "TTFT cold", []string{withMedian(len(colds), &s.Latency.Of[store.ColdTTFT][f.Window]), ", model load included"}, colds, lo, hi, &farCold, func(float64) grid.Style {
		return grid.Fg(theme.SeriesPrefill)
	})
}

// withMedian returns the number of kept requests, and their median.
func withMedian(kept int, sum *metric.Summary) string {
	words := keptOf(kept, sum.Count, "request")
	if sum.Count > 0 {
		words += ", p50 " + metric.Duration(sum.P50)
	}
	return words
}

// ttfts returns the TTFT of the warm or cold requests of a window in ns. It adds warm ones above the target and all cold
// ones to far.
func ttfts(s *store.Snapshot, w metric.Window, cold bool, far *outliers) (values []float64) {
	target := float64(s.Latency.Targets.TTFT)
	values = make([]float64, 0, len(s.Requests)+len(s.Earlier))
	for r := range s.CountedIn(w, cold) {
		ns := r.TTFT.V * 1e9
		if ns <= 0 {
			continue
		}
		values = append(values, ns)
		if cold || target > 0 && ns > target {
			far.add(outlier{ns, r.ID, -1})
		}
	}
	return values
}
