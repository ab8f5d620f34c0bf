package latency

import (
	"cmp"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

const noTTFT = "TTFT: not reported by this engine"

// NoTTFT reports whether DrawTTFT has nothing to draw: a ready server reports no TTFT, no slots, no models and no load.
func NoTTFT(s *store.Snapshot) bool {
	r := &s.Aggregates
	return r.At != 0 && !Measured(s) && s.Engine.State > event.EngineLoading && s.Engine.Reason == "" && !countsTTFT(r) &&
		len(r.Slots)+len(r.Models)+len(s.Load)+len(startupPhases(s)) == 0
}

// drawUnmeasuredTTFT draws TTFT without measured requests: the mean TTFT by component that a server counts, one bar per
// window, or else the load, or the requests in slots.
func drawUnmeasuredTTFT(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	if s.Engine.State <= event.EngineLoading && len(s.Requests) == 0 {
		drawLoad(a, s, f)
		return
	}
	r := &s.Aggregates
	if r.At == 0 {
		if !f.Waiting(a, s) && !drawLoadOnly(a, s, f, "no request yet") {
			f.Absent(a, pane.Dim, "no request yet", f.Suggest)
		}
		return
	}
	switch known := countsTTFT(r); {
	case noRequestData(r) && drawLoadOnly(a, s, f, noTTFT):
	case known:
		drawCountedTTFT(a, s, f)
	case len(r.Slots)+len(r.Models) > 0:
		drawSlots(a, s, f)
	case drawStartup(a, s, f, "; TTFT: not reported"):
	default: // of an engine that says why: see NoTTFT
		f.Absent(a, pane.Dim, sanitize.Line(s.Engine.Reason), noTTFT)
	}
}

// drawCountedTTFT draws the mean TTFT that a server counts, and its components.
func drawCountedTTFT(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	r := &s.Aggregates
	top := longestTTFT(r)
	if top == 0 && drawStartup(a, s, f, "; no request since llmtop attached") {
		return
	}
	if top == 0 {
		f.Absent(a, pane.Dim, "no request since llmtop attached", earlierTTFT(r))
		return
	}
	const names, numbers = 12, 11
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	for w := range metric.NumWindows {
		parts := r.Parts(w)
		y := int(w)
		a.Text(0, y, pane.Plain, w.String())
		sum := r.Summary(event.HistogramTTFT, w)
		switch {
		case sum.Count > 0:
			a.Right(a.W, y, pane.Data, metric.Duration(int64(sum.Mean)))
		case len(parts.Parts) == 0:
			bar.Text(0, y, pane.Dim, "none")
			continue
		case !parts.Apart:
			a.Right(a.W, y, pane.Dim, ">"+metric.Duration(int64(totalNs(parts.Parts))))
		}
		if parts.Apart {
			bar.Elide(0, y, bar.W, pane.Dim, apartWords(parts.Parts), f.Skin.Glyphs.Ellipsis)
			continue
		}
		pane.DrawStack(bar, f, y, &store.Request{Parts: parts.Parts}, top/1e9)
	}
	aggregateParts(a.Sub(0, int(metric.NumWindows)+1, a.W, a.H-int(metric.NumWindows)-1), s, f)
}

// apartWords lists parts that must not be added, each with the number of its requests.
func apartWords(parts []store.Part) string {
	words := ""
	for _, p := range parts {
		words += ", " + pane.ComponentLook(p.Stage).Name + " " + metric.Duration(int64(p.Dur)) + " of " + metric.Count(float64(p.Count))
	}
	return words[2:]
}

// earlierTTFT describes the TTFT before llmtop attached; "" if it is unknown.
func earlierTTFT(r *store.Aggregates) string {
	for _, t := range earlierTimes(r) {
		if t.name == store.Latencies[store.TTFT].Name {
			return metric.Count(float64(t.Count)) + " before, mean TTFT " + metric.Duration(int64(t.Mean))
		}
	}
	return ""
}

// longestTTFT returns the longest bar of all windows in ns, 0 without any.
func longestTTFT(r *store.Aggregates) (top float64) {
	for w := range metric.NumWindows {
		top = max(top, totalNs(r.Parts(w).Parts))
	}
	return top
}

// countsTTFT reports whether an engine reports histograms for a TTFT bar.
func countsTTFT(r *store.Aggregates) bool {
	return r.Histogram(event.HistogramTTFT) != nil || r.Histogram(event.HistogramQueue) != nil || r.Histogram(event.HistogramPrefill) != nil
}

// noRequestData reports whether there is nothing to show of requests: no TTFT histograms and no busy slot.
func noRequestData(r *store.Aggregates) bool {
	return !countsTTFT(r) && !slices.ContainsFunc(r.Slots, func(v event.Slot) bool { return v.Request != 0 })
}

// totalNs returns the length of a bar in ns.
func totalNs(parts []store.Part) (sum float64) {
	for _, p := range parts {
		sum += float64(p.Dur)
	}
	return sum
}

// aggregateParts writes the components of the bar of the selected window, and its percentiles.
func aggregateParts(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	parts := s.Aggregates.Parts(f.Window)
	l := a.Line(0, 0)
	for _, p := range slices.SortedStableFunc(slices.Values(parts.Parts), func(a, b store.Part) int { return cmp.Compare(b.Dur, a.Dur) }) { // the largest first: the rest may not fit
		if parts.Undivided() {
			break
		}
		k := pane.ComponentLook(p.Stage)
		words := k.Name + " " + metric.Duration(int64(p.Dur))
		switch {
		case parts.Total > 0:
			words += " " + metric.Percent(p.Share)
		case parts.Apart:
			words += " of " + metric.Count(float64(p.Count))
		}
		l.Fit(grid.Piece{Style: grid.Fg(k.Role), Words: string(f.Skin.Glyphs.Swatch) + " "}, grid.Piece{Style: pane.Plain, Words: words + "  "})
	}
	sum := s.Aggregates.Summary(event.HistogramTTFT, f.Window)
	note := "means from engine histograms; < and > mark the outermost buckets"
	switch {
	case parts.Undivided():
		l.Put(pane.Dim, "components of TTFT: not reported by this engine")
	case len(parts.Parts) == 0, parts.Total > 0:
	case sum.Origin == event.NotReported:
		a.Text(0, 1, pane.Dim, "means of components; TTFT itself is not reported")
		return
	case parts.Apart:
		note = "means of different requests: they do not add up to TTFT"
	}
	if sum.Count > 0 {
		l := a.Line(0, 1)
		l.Put(pane.Dim, "p50 ").Put(pane.Plain, metric.QuantileOf(sum.P50)).Put(pane.Dim, "  p95 ").Put(pane.Plain, metric.QuantileOf(sum.P95))
		l.Put(pane.Dim, "  p99 ").Put(pane.Plain, metric.QuantileOf(sum.P99))
		l.Fit(grid.Piece{Style: pane.Dim, Words: "  of " + metric.Count(float64(sum.Count)) + ", " + f.Window.String()})
	}
	a.Elide(0, 2, a.W, pane.Dim, note, f.Skin.Glyphs.Ellipsis)
}
