package panes

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// histogramNames are the display names of latency histograms; others keep the name of the engine.
var histogramNames = map[string]string{
	event.HistogramTTFT: "TTFT", event.HistogramITL: "ITL", event.HistogramTPOT: "TPOT", event.HistogramE2EL: "E2EL", event.HistogramQueue: "queue time",
	event.HistogramPrefill: "prefill", event.HistogramDecode: "decode", event.HistogramInference: "inference",
	event.HistogramPerToken: "per token",
}

func histogramName(name string) string {
	if known, ok := histogramNames[name]; ok {
		return known
	}
	return sanitize.Line(name)
}

// runningCount returns the number of running requests.
func runningCount(s *store.Snapshot) event.Reading {
	switch {
	case s.Aggregates != nil:
		return s.Aggregates.Running
	case s.Engine.Caps.Has(event.CapAggregates): // no report yet
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(float64(s.Throughput.Running))
}

// queuedCount returns the number of waiting requests.
func queuedCount(s *store.Snapshot) event.Reading {
	switch {
	case s.Aggregates != nil:
		return s.Aggregates.Waiting
	case !s.Engine.Caps.Has(event.CapQueue):
		return event.Absent(event.NotReported)
	}
	return event.DerivedValue(float64(s.Throughput.Queued))
}

// aggregateTTFT draws the TTFT pane of an engine with aggregate metrics: the mean TTFT by component, one bar per
// window. Without latency histograms it shows probes, the load, or the requests in slots.
func (c *Ctx) aggregateTTFT(a grid.Area, s *store.Snapshot) {
	r, known := s.Aggregates, c.countsTTFT(s.Aggregates)
	switch {
	case !known && c.probes(a, s):
		return
	case c.noRequestData(r) && c.loadOnly(a, s, "TTFT: not reported by this engine"):
		return
	case !known && len(r.Slots) > 0:
		c.slots(a, s)
		return
	case !known && c.startup(a, s, "; TTFT: not reported"):
		return
	case !known:
		c.absent(a, dim, "TTFT: not reported by this engine", "")
		return
	}
	top := longestTTFT(r)
	if top == 0 && c.startup(a, s, "; no request since llmtop attached") {
		return
	}
	if top == 0 {
		c.absent(a, dim, "no request since llmtop attached", "")
		return
	}
	const names, numbers = 12, 11
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	for w := range metric.NumWindows {
		parts, total := r.Parts(w)
		y := int(w)
		a.Text(0, y, text, w.String())
		switch {
		case len(parts) == 0:
			bar.Text(0, y, dim, "none")
			continue
		case total > 0:
			a.Right(a.W, y, data, metric.Duration(int64(total)))
		default:
			a.Right(a.W, y, dim, ">"+metric.Duration(int64(totalNs(parts))))
		}
		segs := c.Scratch.Segs[:0]
		for _, p := range parts {
			k := componentLook(p.Stage)
			segs = append(segs, grid.Seg{Share: float64(p.Dur) / top, Role: k.role, Fill: c.Skin.Glyphs.Fills[k.fill]})
		}
		c.Scratch.Segs = segs
		bar.Stack(0, y, bar.W, segs, c.Skin.Colour(), c.Skin.Glyphs)
	}
	c.aggregateParts(a.Sub(0, int(metric.NumWindows)+1, a.W, a.H-int(metric.NumWindows)-1), s)
}

// longestTTFT returns the longest bar of all windows in ns, 0 without any.
func longestTTFT(r *store.Aggregates) (top float64) {
	for w := range metric.NumWindows {
		parts, _ := r.Parts(w)
		top = max(top, totalNs(parts))
	}
	return top
}

// countsTTFT reports whether an engine reports histograms for a TTFT bar.
func (c *Ctx) countsTTFT(r *store.Aggregates) bool {
	return r.Summary(event.HistogramTTFT, c.Window) != nil || r.Summary(event.HistogramQueue, c.Window) != nil || r.Summary(event.HistogramPrefill, c.Window) != nil
}

// noRequestData reports whether there is nothing to show of requests: no TTFT histograms and no busy slot.
func (c *Ctx) noRequestData(r *store.Aggregates) bool {
	return !c.countsTTFT(r) && !slices.ContainsFunc(r.Slots, func(v event.Slot) bool { return v.Request != 0 })
}

// totalNs returns the length of a bar in ns.
func totalNs(parts []store.Part) (sum float64) {
	for _, p := range parts {
		sum += float64(p.Dur)
	}
	return sum
}

// aggregateParts writes the components of the bar of the selected window, and its percentiles.
func (c *Ctx) aggregateParts(a grid.Area, s *store.Snapshot) {
	parts, total := s.Aggregates.Parts(c.Window)
	l := a.Line(0, 0)
	for _, p := range slices.SortedStableFunc(slices.Values(parts), func(a, b store.Part) int { return cmp.Compare(b.Dur, a.Dur) }) { // the largest first: the rest may not fit
		k := componentLook(p.Stage)
		words := k.name + " " + metric.Duration(int64(p.Dur))
		if total > 0 {
			words += " " + metric.Percent(p.Share)
		}
		l.Fit(grid.Piece{Style: grid.Fg(k.role), Words: string(c.Skin.Glyphs.Swatch) + " "}, grid.Piece{Style: text, Words: words + "  "})
	}
	if total == 0 && len(parts) > 0 {
		a.Text(0, 1, dim, "means of components; TTFT itself is not reported")
		return
	}
	if sum := s.Aggregates.Summary(event.HistogramTTFT, c.Window); sum != nil && sum.Count > 0 {
		l := a.Line(0, 1)
		l.Put(dim, "p50 ").Put(text, metric.QuantileOf(sum.P50)).Put(dim, "  p95 ").Put(text, metric.QuantileOf(sum.P95))
		l.Put(dim, "  p99 ").Put(text, metric.QuantileOf(sum.P99))
		l.Fit(grid.Piece{Style: dim, Words: "  of " + metric.Count(float64(sum.Count)) + ", " + c.Window.String()})
	}
	c.probeLine(a, 3, s)
	a.Elide(0, 2, a.W, dim, "means from engine histograms; < and > mark the outermost buckets", c.Skin.Glyphs.Ellipsis)
}

// histogramTable lists the latency histograms over the selected window and returns the rows used.
func (c *Ctx) histogramTable(a grid.Area, s *store.Snapshot) int {
	const names, col = 14, 10
	heads := [...]string{"mean", "p50", "p90", "p95", "p99", "samples"}
	for i, h := range heads {
		if x := names + (i+1)*col; x <= a.W {
			a.Right(x, 0, head, h)
		}
	}
	y := 1
	for i := range s.Aggregates.Histograms {
		t := &s.Aggregates.Histograms[i]
		if y >= a.H {
			break
		}
		sum := &t.Windows[c.Window]
		a.Elide(0, y, names-1, dim, histogramName(t.Name), c.Skin.Glyphs.Ellipsis)
		cells := [...]string{"-", "-", "-", "-", "-", "0"}
		if sum.Count > 0 {
			cells = [...]string{
				metric.Duration(int64(sum.Mean)), metric.QuantileOf(sum.P50), metric.QuantileOf(sum.P90), metric.QuantileOf(sum.P95),
				metric.QuantileOf(sum.P99), metric.Count(float64(sum.Count)),
			}
		}
		for i, words := range cells {
			st := data
			if words == "-" || i == len(cells)-1 {
				st = dim
			}
			if x := names + (i+1)*col; x <= a.W {
				a.Right(x, y, st, words)
			}
		}
		y++
	}
	return y
}

// aggregateLatency draws the Latency view of an engine with aggregate metrics.
func (c *Ctx) aggregateLatency(a grid.Area, s *store.Snapshot) {
	if len(s.Aggregates.Histograms) == 0 {
		c.latencyWithoutHistograms(a, s)
		return
	}
	n := c.histogramTable(a, s)
	if slices.ContainsFunc(s.Aggregates.Histograms, func(t store.WindowedHistogram) bool { return t.Bounds != nil }) {
		for _, words := range []string{
			"engine histograms: means are exact, percentiles interpolated within buckets;",
			"< and > mark the outermost buckets, which have only one bound",
		} {
			n++
			a.Elide(0, n, a.W, dim, words, c.Skin.Glyphs.Ellipsis)
		}
	}
	if c.probeLine(a, n+1, s) {
		n++
	}
	rest := a.Sub(0, n+2, a.W, a.H-n-2)
	n = c.polledRequests(rest, s)
	c.ratesIfRoom(rest.Sub(0, n, rest.W, rest.H-n), s)
}

// latencyWithoutHistograms draws the Latency view of an engine without latency histograms: probes or polled requests.
func (c *Ctx) latencyWithoutHistograms(a grid.Area, s *store.Snapshot) {
	switch {
	case c.probes(a, s):
	case polledCount(s) > 0:
		n := c.polledRequests(a, s)
		c.ratesIfRoom(a.Sub(0, n, a.W, a.H-n), s)
	default:
		c.absent(a, dim, "latencies: not reported by this engine", "measure them with llmtop attach --probe or llmtop proxy")
	}
}

// polledRequests lists polled requests in the upper half of an area and returns the rows used, 0 without any.
func (c *Ctx) polledRequests(a grid.Area, s *store.Snapshot) int {
	n := min(polledCount(s)+1, a.H/2)
	if n < 2 {
		return 0
	}
	c.polledTable(a.Sub(0, 0, a.W, n), s)
	a.Elide(0, n+1, a.W, dim, "from slot progress between two polls, newest first", c.Skin.Glyphs.Ellipsis)
	a.Elide(0, n+2, a.W, dim, firstFitting(a.W, "other latencies are not reported: measure them with llmtop attach --probe or llmtop proxy",
		"others: measure with llmtop attach --probe or llmtop proxy"), c.Skin.Glyphs.Ellipsis)
	return n + 4
}

// ratesIfRoom draws the throughput chart below the latencies, if there is room.
func (c *Ctx) ratesIfRoom(a grid.Area, s *store.Snapshot) {
	if pts := s.Throughput.Series; a.H >= 6 && len(pts) >= 2 {
		drawRatesChart(a, pts, c)
	}
}

// slots draws the busy slots: prompt tokens processed and tokens generated.
func (c *Ctx) slots(a grid.Area, s *store.Snapshot) {
	busy := 0
	for i := range s.Aggregates.Slots {
		v := &s.Aggregates.Slots[i]
		if v.Request == 0 || busy >= a.H-1 {
			continue
		}
		c.slot(a.Sub(0, busy, a.W, 1), v, s)
		busy++
	}
	if busy == 0 {
		words := strconv.Itoa(len(s.Aggregates.Slots)) + " slots, all idle"
		if len(s.Aggregates.Slots) == 1 {
			words = "1 slot, idle"
		}
		c.absent(a, dim, words, "TTFT: not reported by this engine")
		return
	}
	a.Elide(0, a.H-1, a.W, dim, firstFitting(a.W, "slots at the last poll; TTFT is not reported by this engine", "slots; TTFT not reported"), c.Skin.Glyphs.Ellipsis)
}

func (c *Ctx) slot(a grid.Area, v *event.Slot, s *store.Snapshot) {
	a.Text(0, 0, text, "#"+strconv.Itoa(int(v.Request)))
	a.Text(6, 0, dim, "slot "+strconv.Itoa(v.Slot))
	words := strconv.Itoa(v.Generated) + " tokens"
	if v.Generated == 0 {
		words = "prompt " + strconv.Itoa(v.Processed) + "/" + strconv.Itoa(v.Prompt)
		if v.Prompt == 0 {
			words = "prompt " + strconv.Itoa(v.Processed) + " so far"
		}
	}
	for _, r := range s.Requests {
		if r.ID == v.Request && r.DecodeRate.OK() {
			words += "  " + metric.Rate(r.DecodeRate.V) + " tok/s"
		}
	}
	x := a.Right(a.W, 0, data, words)
	bar := a.Sub(15, 0, x-16, 1)
	whole := float64(max(v.Context, v.Prompt+v.Generated, 1))
	gl := c.Skin.Glyphs
	rest := max(v.Processed-v.Cached, 0)
	bar.Stack(0, 0, bar.W, []grid.Seg{
		{Share: float64(v.Cached) / whole, Role: theme.PartOther, Fill: gl.Fills[8]},
		{Share: float64(rest) / whole, Role: theme.SeriesPrefill, Fill: gl.Fills[4]},
		{Share: float64(v.Generated) / whole, Role: theme.SeriesDecode, Fill: gl.Fills[5]},
	}, c.Skin.Colour(), gl)
}
