package panes

import (
	"cmp"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// spanNames are what durations that engines count are called; others keep the engine's name.
var spanNames = map[string]string{
	event.TimesTTFT: "TTFT", event.TimesITL: "ITL", event.TimesTPOT: "TPOT", event.TimesE2EL: "E2EL", event.TimesQueue: "queue",
	event.TimesPrefill: "prefill", event.TimesDecode: "decode", event.TimesInference: "inference",
	event.TimesPerToken: "per token",
}

func spanName(name string) string {
	if known, ok := spanNames[name]; ok {
		return known
	}
	return sanitize.Line(name)
}

// runningOf and queuedOf are how many requests run and wait.
func runningOf(s *store.Snapshot) event.Reading {
	switch {
	case s.Reported != nil:
		return s.Reported.Running
	case s.Engine.Caps.Has(event.CapReports): // before its first report nothing is known
		return event.Absent(event.NotYet)
	}
	return event.From(float64(s.Throughput.Running))
}

func queuedOf(s *store.Snapshot) event.Reading {
	switch {
	case s.Reported != nil:
		return s.Reported.Waiting
	case !s.Engine.Caps.Has(event.CapQueue):
		return event.Absent(event.NotReported)
	}
	return event.From(float64(s.Throughput.Queued))
}

// reportedTTFT fills the TTFT pane for an engine that is known in sum: its mean TTFT by its mean parts, a bar for each window. An engine that
// counts no times shows the requests in its slots.
func (c *Ctx) reportedTTFT(a grid.Area, s *store.Snapshot) {
	r, known := s.Reported, c.counts(s.Reported)
	switch {
	case !known && c.probes(a, s):
		return
	case c.idle(r) && c.loadAlone(a, s, "TTFT: not reported by this engine"):
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
	if top == 0 && c.startup(a, s, "; no request yet since llmtop began to look") {
		return
	}
	if top == 0 {
		c.absent(a, dim, "no request yet since llmtop began to look", "")
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
			a.Right(a.W, y, dim, ">"+metric.Duration(int64(lengthOf(parts))))
		}
		segs := c.Memory.segs[:0]
		for _, p := range parts {
			k := look(p.Stage)
			segs = append(segs, grid.Seg{Share: float64(p.Dur) / top, Role: k.role, Fill: c.Skin.Glyphs.Fills[k.fill]})
		}
		c.Memory.segs = segs
		bar.Stack(0, y, bar.W, segs, c.Skin.Colour(), c.Skin.Glyphs)
	}
	c.reportedParts(a.Sub(0, int(metric.NumWindows)+1, a.W, a.H-int(metric.NumWindows)-1), s)
}

// longestTTFT is the longest bar of all windows, in ns; 0 if there is none.
func longestTTFT(r *store.Reported) (top float64) {
	for w := range metric.NumWindows {
		parts, _ := r.Parts(w)
		top = max(top, lengthOf(parts))
	}
	return top
}

// counts reports whether an engine counts what a bar of TTFT is made of.
func (c *Ctx) counts(r *store.Reported) bool {
	return r.Over(event.TimesTTFT, c.Window) != nil || r.Over(event.TimesQueue, c.Window) != nil || r.Over(event.TimesPrefill, c.Window) != nil
}

// idle reports whether there is nothing of requests to show: the engine counts no times, and no request is in one of its slots.
func (c *Ctx) idle(r *store.Reported) bool {
	return !c.counts(r) && !slices.ContainsFunc(r.Slots, func(v event.Slot) bool { return v.Request != 0 })
}

// lengthOf is the length of a bar in ns.
func lengthOf(parts []store.Part) (sum float64) {
	for _, p := range parts {
		sum += float64(p.Dur)
	}
	return sum
}

// reportedParts says in words what the bar of the chosen window is made of.
func (c *Ctx) reportedParts(a grid.Area, s *store.Snapshot) {
	parts, total := s.Reported.Parts(c.Window)
	l := a.Line(0, 0)
	for _, p := range slices.SortedStableFunc(slices.Values(parts), func(a, b store.Part) int { return cmp.Compare(b.Dur, a.Dur) }) { // there may be room for the largest alone
		k := look(p.Stage)
		words := k.name + " " + metric.Duration(int64(p.Dur))
		if total > 0 {
			words += " " + metric.Percent(p.Share)
		}
		l.Fit(grid.Piece{Style: grid.Fg(k.role), Words: string(c.Skin.Glyphs.Swatch) + " "}, grid.Piece{Style: text, Words: words + "  "})
	}
	if total == 0 && len(parts) > 0 {
		a.Text(0, 1, dim, "means of parts; this engine does not report TTFT itself")
		return
	}
	if sum := s.Reported.Over(event.TimesTTFT, c.Window); sum != nil && sum.Count > 0 {
		l := a.Line(0, 1)
		l.Put(dim, "p50 ").Put(text, metric.QuantileOf(sum.P50)).Put(dim, "  p95 ").Put(text, metric.QuantileOf(sum.P95))
		l.Put(dim, "  p99 ").Put(text, metric.QuantileOf(sum.P99))
		l.Fit(grid.Piece{Style: dim, Words: "  of " + metric.Count(float64(sum.Count)) + ", " + c.Window.String()})
	}
	c.probeLine(a, 3, s)
	a.Elide(0, 2, a.W, dim, "means as the engine counts them; < and > are the ends of its buckets", c.Skin.Glyphs.Ellipsis)
}

// reportedTable lists what the engine counts of each duration over the chosen window, and returns the rows that it took.
func (c *Ctx) reportedTable(a grid.Area, s *store.Snapshot) int {
	const names, col = 14, 10
	heads := [...]string{"mean", "p50", "p90", "p95", "p99", "samples"}
	for i, h := range heads {
		if x := names + (i+1)*col; x <= a.W {
			a.Right(x, 0, head, h)
		}
	}
	y := 1
	for i := range s.Reported.Spans {
		t := &s.Reported.Spans[i]
		if y >= a.H {
			break
		}
		sum := &t.Windows[c.Window]
		a.Elide(0, y, names-1, dim, spanName(t.Name), c.Skin.Glyphs.Ellipsis)
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

// reportedLatency fills the latency view.
func (c *Ctx) reportedLatency(a grid.Area, s *store.Snapshot) {
	if len(s.Reported.Spans) == 0 {
		c.unreportedLatency(a, s)
		return
	}
	n := c.reportedTable(a, s)
	if slices.ContainsFunc(s.Reported.Spans, func(t store.Times) bool { return t.Bounds != nil }) {
		for _, words := range []string{
			"as the engine counts them, in buckets of its own: means are exact, percentiles are interpolated between the bounds of a bucket;",
			"< and > are the bounds of the first and the last one, of which no more is known",
		} {
			n++
			a.Elide(0, n, a.W, dim, words, c.Skin.Glyphs.Ellipsis)
		}
	}
	if c.probeLine(a, n+1, s) {
		n++
	}
	rest := a.Sub(0, n+2, a.W, a.H-n-2)
	n = c.polledHalf(rest, s)
	c.titledRates(rest.Sub(0, n, rest.W, rest.H-n), s)
}

// unreportedLatency fills the latency view for an engine that counts no durations: what probes have measured, or what was seen of requests in slots.
func (c *Ctx) unreportedLatency(a grid.Area, s *store.Snapshot) {
	switch {
	case c.probes(a, s):
	case polled(s) > 0:
		n := c.polledHalf(a, s)
		c.titledRates(a.Sub(0, n, a.W, a.H-n), s)
	default:
		c.absent(a, dim, "latencies: not reported by this engine", "a probe (llmtop attach --probe) or the proxy would measure them")
	}
}

// polledHalf lists requests that were seen in slots in the upper half of an area, and returns the rows that it took, 0 if there are none.
func (c *Ctx) polledHalf(a grid.Area, s *store.Snapshot) int {
	n := min(polled(s)+1, a.H/2)
	if n < 2 {
		return 0
	}
	c.polledTable(a.Sub(0, 0, a.W, n), s)
	a.Elide(0, n+1, a.W, dim, "by how far requests in slots were at two looks, newest first", c.Skin.Glyphs.Ellipsis)
	a.Elide(0, n+2, a.W, dim, "others are not reported: a probe (llmtop attach --probe) or the proxy would measure them", c.Skin.Glyphs.Ellipsis)
	return n + 4
}

// titledRates is the course of tokens/s below what is known of latencies.
func (c *Ctx) titledRates(a grid.Area, s *store.Snapshot) {
	if pts := s.Throughput.Series; a.H >= 6 && len(pts) >= 2 {
		drawRatesChart(a, pts, c)
	}
}

// slots draws the requests in an engine's slots: how much of the prompt has been processed, and how much was generated.
func (c *Ctx) slots(a grid.Area, s *store.Snapshot) {
	busy := 0
	for i := range s.Reported.Slots {
		v := &s.Reported.Slots[i]
		if v.Request == 0 || busy >= a.H-1 {
			continue
		}
		c.slot(a.Sub(0, busy, a.W, 1), v, s)
		busy++
	}
	if busy == 0 {
		words := itoa(len(s.Reported.Slots)) + " slots, all idle"
		if len(s.Reported.Slots) == 1 {
			words = "1 slot, idle"
		}
		c.absent(a, dim, words, "TTFT: not reported by this engine")
		return
	}
	a.Elide(0, a.H-1, a.W, dim, "slots as they were seen; TTFT is not reported by this engine", c.Skin.Glyphs.Ellipsis)
}

func (c *Ctx) slot(a grid.Area, v *event.Slot, s *store.Snapshot) {
	a.Text(0, 0, text, "#"+itoa(int(v.Request)))
	a.Text(6, 0, dim, "slot "+itoa(v.Slot))
	words := itoa(v.Generated) + " tokens"
	if v.Generated == 0 {
		words = "prompt " + itoa(v.Processed) + "/" + itoa(v.Prompt)
		if v.Prompt == 0 {
			words = "prompt " + itoa(v.Processed) + " so far"
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
