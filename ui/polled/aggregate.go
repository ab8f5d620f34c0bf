package polled

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
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

// DrawTTFT draws the TTFT pane of an engine with aggregate metrics.
func DrawTTFT(a grid.Area, s *store.Snapshot, c *pane.Frame) {
	in := ttftBox(c, a)
	if s.Engine.State <= event.EngineLoading && len(s.Requests) == 0 {
		DrawLoad(in, s, c)
		return
	}
	drawTTFT(c, in, s)
}

const noTTFT = "TTFT: not reported by this engine"

func ttftBox(c *pane.Frame, a grid.Area) grid.Area {
	return c.Box(a, "time to first token by component")
}

// drawTTFT draws the mean TTFT by component, one bar per window. Without latency histograms it shows probes, the load,
// or the requests in slots.
func drawTTFT(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	r, known := s.Aggregates, countsTTFT(s.Aggregates)
	switch {
	case !known && drawProbes(c, a, s):
		return
	case noRequestData(r) && DrawLoadOnly(c, a, s, noTTFT):
		return
	case !known && len(r.Slots)+len(r.Models) > 0:
		drawSlots(c, a, s)
		return
	case !known && drawStartup(c, a, s, "; TTFT: not reported"):
		return
	case !known && s.Engine.State == event.EnginePaused && s.Engine.Reason != "":
		c.Absent(a, pane.Dim, sanitize.Line(s.Engine.Reason), noTTFT)
		return
	case !known:
		c.Absent(a, pane.Dim, noTTFT, "")
		return
	}
	top := longestTTFT(r)
	if top == 0 && drawStartup(c, a, s, "; no request since llmtop attached") {
		return
	}
	if top == 0 {
		c.Absent(a, pane.Dim, "no request since llmtop attached", earlierTTFT(r))
		return
	}
	const names, numbers = 12, 11
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	for w := range metric.NumWindows {
		parts := r.Parts(w)
		y := int(w)
		a.Text(0, y, pane.Plain, w.String())
		sum, _ := r.Summary(event.HistogramTTFT, w)
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
			bar.Elide(0, y, bar.W, pane.Dim, apartWords(parts.Parts), c.Skin.Glyphs.Ellipsis)
			continue
		}
		segs := c.Scratch.Segs[:0]
		for _, p := range parts.Parts {
			k := pane.ComponentLook(p.Stage)
			segs = append(segs, grid.Seg{Share: float64(p.Dur) / top, Role: k.Role, Fill: c.Skin.Glyphs.Fills[k.Fill]})
		}
		c.Scratch.Segs = segs
		bar.Stack(0, y, bar.W, segs, c.Skin.Colour(), c.Skin.Glyphs)
	}
	aggregateParts(c, a.Sub(0, int(metric.NumWindows)+1, a.W, a.H-int(metric.NumWindows)-1), s)
}

// apartWords lists parts that must not be added, each with the number of its requests.
func apartWords(parts []store.ServerPart) string {
	words := ""
	for _, p := range parts {
		words += ", " + pane.ComponentLook(p.Stage).Name + " " + metric.Duration(int64(p.Dur)) + " of " + metric.Count(float64(p.Count))
	}
	return words[2:]
}

// earlierTTFT describes the TTFT before llmtop attached; "" if it is unknown.
func earlierTTFT(r *store.Aggregates) string {
	for _, t := range earlierTimes(r) {
		if t.name == event.HistogramTTFT {
			return metric.Count(float64(t.sum.Count)) + " before, mean TTFT " + metric.Duration(int64(t.sum.Mean))
		}
	}
	return ""
}

// namedTimes is a row of the table of histograms.
type namedTimes struct {
	name string
	sum  metric.BucketSummary
}

// earlierTimes returns what the engine had counted before llmtop attached.
func earlierTimes(r *store.Aggregates) (out []namedTimes) {
	if r.Earlier == nil {
		return nil
	}
	for i := range r.Earlier.Histograms {
		t := &r.Earlier.Histograms[i]
		var b metric.Buckets
		b.Add(t)
		out = append(out, namedTimes{t.Name, b.Summary()})
	}
	return out
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
func totalNs(parts []store.ServerPart) (sum float64) {
	for _, p := range parts {
		sum += float64(p.Dur)
	}
	return sum
}

// aggregateParts writes the components of the bar of the selected window, and its percentiles.
func aggregateParts(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	parts := s.Aggregates.Parts(c.Window)
	l := a.Line(0, 0)
	for _, p := range slices.SortedStableFunc(slices.Values(parts.Parts), func(a, b store.ServerPart) int { return cmp.Compare(b.Dur, a.Dur) }) { // the largest first: the rest may not fit
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
		l.Fit(grid.Piece{Style: grid.Fg(k.Role), Words: string(c.Skin.Glyphs.Swatch) + " "}, grid.Piece{Style: pane.Plain, Words: words + "  "})
	}
	sum, reported := s.Aggregates.Summary(event.HistogramTTFT, c.Window)
	note := "means from engine histograms; < and > mark the outermost buckets"
	switch {
	case parts.Undivided():
		l.Put(pane.Dim, "components of TTFT: not reported by this engine")
	case len(parts.Parts) == 0, parts.Total > 0:
	case !reported:
		a.Text(0, 1, pane.Dim, "means of components; TTFT itself is not reported")
		return
	case parts.Apart:
		note = "means of different requests: they do not add up to TTFT"
	}
	if sum.Count > 0 {
		l := a.Line(0, 1)
		l.Put(pane.Dim, "p50 ").Put(pane.Plain, metric.QuantileOf(sum.P50)).Put(pane.Dim, "  p95 ").Put(pane.Plain, metric.QuantileOf(sum.P95))
		l.Put(pane.Dim, "  p99 ").Put(pane.Plain, metric.QuantileOf(sum.P99))
		l.Fit(grid.Piece{Style: pane.Dim, Words: "  of " + metric.Count(float64(sum.Count)) + ", " + c.Window.String()})
	}
	probeLine(c, a, 3, s)
	a.Elide(0, 2, a.W, pane.Dim, note, c.Skin.Glyphs.Ellipsis)
}

// histogramTable lists the latency histograms over the selected window, or, while none has samples, what the engine had
// counted before llmtop attached. It returns the rows used.
func histogramTable(c *pane.Frame, a grid.Area, s *store.Snapshot) int {
	const names, col = 14, 10
	heads := [...]string{"mean", "p50", "p90", "p95", "p99", "samples"}
	for i, h := range heads {
		if x := names + (i+1)*col; x <= a.W {
			a.Right(x, 0, pane.Heading, h)
		}
	}
	rows := make([]namedTimes, 0, len(s.Aggregates.Histograms))
	counted := false
	for i := range s.Aggregates.Histograms {
		t := &s.Aggregates.Histograms[i]
		rows = append(rows, namedTimes{t.Name, t.Summary(c.Window)})
		counted = counted || t.Summary(metric.Session).Count > 0
	}
	if before := earlierTimes(s.Aggregates); !counted && len(before) > 0 {
		rows = before
		a.Text(0, 0, pane.Heading, "before attach")
	}
	y := 1
	for i := range rows {
		t := &rows[i]
		if y >= a.H {
			break
		}
		sum := &t.sum
		a.Elide(0, y, names-1, pane.Dim, histogramName(t.name), c.Skin.Glyphs.Ellipsis)
		cells := [...]string{"-", "-", "-", "-", "-", "0"}
		if sum.Count > 0 {
			cells = [...]string{
				metric.Duration(int64(sum.Mean)), metric.QuantileOf(sum.P50), metric.QuantileOf(sum.P90), metric.QuantileOf(sum.P95),
				metric.QuantileOf(sum.P99), metric.Count(float64(sum.Count)),
			}
		}
		for i, words := range cells {
			st := pane.Data
			if words == "-" || i == len(cells)-1 {
				st = pane.Dim
			}
			if x := names + (i+1)*col; x <= a.W {
				a.Right(x, y, st, words)
			}
		}
		y++
	}
	return y
}

// DrawLatency draws the Latency view of an engine with aggregate metrics. overTime: only what changes over time.
func DrawLatency(c *pane.Frame, a grid.Area, overTime bool, s *store.Snapshot) {
	switch {
	case len(s.Aggregates.Histograms) == 0:
		latencyWithoutHistograms(c, a, s)
		return
	case overTime && drawTrends(c, a, s):
		return
	}
	n := histogramTable(c, a, s)
	if slices.ContainsFunc(s.Aggregates.Histograms, func(t store.WindowedHistogram) bool { return t.Bounds() != nil }) {
		for _, words := range []string{
			"engine histograms: means are exact, percentiles interpolated within buckets;",
			"< and > mark the outermost buckets, which have only one bound",
		} {
			n++
			a.Elide(0, n, a.W, pane.Dim, words, c.Skin.Glyphs.Ellipsis)
		}
	}
	if probeLine(c, a, n+1, s) {
		n++
	}
	rest := a.Sub(0, n+2, a.W, a.H-n-2)
	n = polledRequests(c, rest, s)
	if rest = rest.Sub(0, n, rest.W, rest.H-n); !drawTrends(c, rest, s) {
		ratesIfRoom(c, rest, s)
	}
}

// noLatency is why there are no latencies, measureLatency how to get them.
const (
	noLatency      = "latencies: not reported by this engine"
	measureLatency = "measure them with llmtop attach --probe or llmtop proxy"
)

// MissingLatency returns why an engine has no latencies, and how to get them; why is "" if it reports histograms,
// requests or slots, or if llmtop has sent requests.
func MissingLatency(s *store.Snapshot) (why, advice string) {
	if s.NoPerRequest() && len(s.Aggregates.Histograms)+len(s.Requests) == 0 {
		return noLatency, measureLatency
	}
	return "", ""
}

// latencyWithoutHistograms draws the Latency view of an engine without latency histograms: probes or polled requests.
func latencyWithoutHistograms(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	switch {
	case drawProbes(c, a, s):
	case polledCount(s) > 0:
		n := polledRequests(c, a, s)
		ratesIfRoom(c, a.Sub(0, n, a.W, a.H-n), s)
	default:
		c.Absent(a, pane.Dim, noLatency, measureLatency)
	}
}

// polledRequests lists polled requests in the upper half of an area and returns the rows used, 0 without any.
func polledRequests(c *pane.Frame, a grid.Area, s *store.Snapshot) int {
	n := min(polledCount(s)+1, a.H/2)
	if n < 2 {
		return 0
	}
	polledTable(c, a.Sub(0, 0, a.W, n), s)
	a.Elide(0, n+1, a.W, pane.Dim, "from slot progress between two polls, newest first", c.Skin.Glyphs.Ellipsis)
	a.Elide(0, n+2, a.W, pane.Dim, pane.FirstFitting(a.W, "other latencies are not reported: measure them with llmtop attach --probe or llmtop proxy",
		"others: measure with llmtop attach --probe or llmtop proxy"), c.Skin.Glyphs.Ellipsis)
	return n + 4
}

// ratesIfRoom draws the throughput chart below the latencies, if there is room.
func ratesIfRoom(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	if pts := c.Rates(s); a.H >= 6 && len(pts) >= 2 {
		pane.DrawRatesChart(a, pts, c)
	}
}

// drawSlots draws the models in memory, of an engine that loads them by itself, and the busy slots: prompt tokens
// processed and tokens generated.
func drawSlots(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	const leastSlots = 2 // rows kept for busy slots
	slots := slices.DeleteFunc(slices.Clone(s.Aggregates.Slots), func(v event.Slot) bool { return v.Request == 0 })
	y := drawModels(c, a.Sub(0, 0, a.W, a.H-1-min(len(slots), leastSlots)), s)
	note := noTTFT
	switch n := len(s.Aggregates.Slots); {
	case len(slots) > 0:
		note = pane.FirstFitting(a.W, "slots at the last poll; TTFT is not reported by this engine", "slots; TTFT not reported")
	case n > 0 && y > 0:
		note = pane.FirstFitting(a.W, "all slots idle; "+noTTFT, "all slots idle; TTFT not reported")
	case n == 1:
		c.Absent(a, pane.Dim, "1 slot, idle", noTTFT)
		return
	case n > 0:
		c.Absent(a, pane.Dim, strconv.Itoa(n)+" slots, all idle", noTTFT)
		return
	}
	if y > 0 && y+1+len(slots) < a.H {
		y++ // an empty row
	}
	for i := range slots[:min(len(slots), a.H-1-y)] {
		drawSlot(c, a.Sub(0, y+i, a.W, 1), &slots[i], s)
	}
	if len(slots) > 0 {
		y = a.H - 1
	}
	a.Elide(0, min(y, a.H-1), a.W, pane.Dim, note, c.Skin.Glyphs.Ellipsis)
}

// drawModels lists the models in memory and returns the rows used.
func drawModels(c *pane.Frame, a grid.Area, s *store.Snapshot) int {
	models := s.Aggregates.Models
	if len(models) == 0 || a.H < 2 {
		return 0
	}
	heads, cols := [...]string{"size", "processor", "unload in"}, [...]int{10, 11, 11}
	if a.W < 56 {
		heads, cols = [...]string{"size", "on", "unload"}, [...]int{8, 9, 7}
	}
	names := min(40, a.W-cols[0]-cols[1]-cols[2])
	row := func(y int, st grid.Style, cells [3]string) {
		x := names
		for k, words := range cells {
			x += cols[k]
			a.Right(x, y, st, words)
		}
	}
	a.Text(0, 0, pane.Heading, "in memory")
	row(0, pane.Heading, heads)
	n := len(models)
	if n > a.H-1 {
		n = a.H - 2 // and a row for the others
	}
	for i := range models[:n] {
		m := &models[i]
		a.Elide(0, i+1, names-1, pane.Plain, sanitize.Line(m.Name), c.Skin.Glyphs.Ellipsis)
		row(i+1, pane.Data, [...]string{size(*m), processor(m), unload(m, s.Now)})
	}
	switch {
	case n == len(models):
		return n + 1
	case n == 0:
		a.Clip(0, 1, names, pane.Plain, strconv.Itoa(len(models))+" models")
	default:
		a.Clip(0, n+1, names, pane.Dim, strconv.Itoa(len(models)-n)+" more")
	}
	row(n+1, pane.Data, [...]string{size(models[n:]...), "", ""})
	return n + 2
}

// size returns the memory of models, or "-" if that of one is unknown.
func size(models ...event.LoadedModel) string {
	sum := 0.0
	for i := range models {
		if models[i].Bytes <= 0 {
			return "-"
		}
		sum += float64(models[i].Bytes)
	}
	return metric.Bytes(sum)
}

// processor names what runs a model: "CPU", "GPU", or the share of it that a GPU holds.
func processor(m *event.LoadedModel) string {
	switch share := m.GPUShare(); {
	case !share.OK():
		return "-"
	case share.V == 0:
		return "CPU"
	case share.V == 1:
		return "GPU"
	default:
		return metric.Percent(share.V) + " GPU"
	}
}

// unload returns in how long a model is unloaded.
func unload(m *event.LoadedModel, now event.Time) string {
	switch {
	case m.Stays:
		return "never"
	case m.Until > now:
		return metric.Duration(int64(m.Until-now) / 1e9 * 1e9)
	}
	return "-"
}

func drawSlot(c *pane.Frame, a grid.Area, v *event.Slot, s *store.Snapshot) {
	a.Text(0, 0, pane.Plain, "#"+strconv.Itoa(int(v.Request)))
	label, bar := "slot "+strconv.Itoa(v.Slot), 15
	if v.Model != "" && len(s.Aggregates.Models) > 1 {
		label, bar = sanitize.Line(v.Model), min(max(a.W*2/5, bar), 32)
	}
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
	x := a.Right(a.W, 0, pane.Data, words)
	a.Elide(6, 0, min(bar, x)-7, pane.Dim, label, c.Skin.Glyphs.Ellipsis)
	cells := a.Sub(bar, 0, x-bar-1, 1)
	whole := float64(max(v.Context, v.Prompt+v.Generated, 1))
	gl := c.Skin.Glyphs
	rest := max(v.Processed-v.Cached, 0)
	cells.Stack(0, 0, cells.W, []grid.Seg{
		{Share: float64(v.Cached) / whole, Role: theme.PartOther, Fill: gl.Fills[pane.ComponentLook(event.StageNone).Fill]},
		{Share: float64(rest) / whole, Role: theme.SeriesPrefill, Fill: gl.Fills[pane.ComponentLook(event.StagePrompt).Fill]},
		{Share: float64(v.Generated) / whole, Role: theme.SeriesDecode, Fill: gl.Fills[pane.ComponentLook(event.StageFirst).Fill]},
	}, c.Skin.Colour(), gl)
}
