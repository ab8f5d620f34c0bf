package latency

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// drawLatency draws the latency distributions: percentiles, ITL per second and as a heatmap, histograms of TTFT and ITL,
// TTFT by prompt length, and the stalls.
func drawLatency(a grid.Area, s *store.Snapshot, f *pane.Frame, page, next Page, stall int) {
	covers := [2]string{"percentiles over " + f.Window.String() + "; pacing excluded", f.Window.String()}
	switch page {
	case PageAll:
	case PageDistributions:
		covers[0] = page.String() + ", " + f.Window.String()
	default: // of the whole session
		covers = [2]string{page.String(), page.String()}
	}
	in := f.BoxAs(a, "Latency", covers[:]...)
	if next != page {
		f.Foot(a, pane.Dim, "tab "+next.String())
	}
	if !Measured(s) {
		drawUnmeasured(in, s, f, page)
		return
	}
	drawCompliance(in, s, f)
	gap, top := min(in.H/24, 1), 1
	if drawCacheMisses(in.Line(0, top), store.SumCacheMisses(s.CountedIn(f.Window, false))) {
		top++
	}
	body := in.Sub(0, top+gap, in.W, in.H-top-gap)
	if page != PageAll {
		latencyPage(body, s, f, page, gap)
		return
	}
	if in.W < 104 {
		latencyNarrow(body, s, f, gap)
		return
	}
	w := in.W*52/100 - 2
	left, right := body.Sub(0, 0, w, body.H), body.Sub(w+3, 0, body.W-w-3, body.H)
	n := percentileTable(left, s, f)
	rest := left.Sub(0, n+gap, w, left.H-n-gap)
	chart := rest.H / 2
	switch {
	case !hasITL(s):
		chart = 0
	case !slices.ContainsFunc(s.Requests, table.HasPrompt) && !slices.ContainsFunc(s.Earlier, table.HasPrompt): // which takes a line to say
		chart = rest.H - 1 - gap
	}
	if chart > 0 {
		itlChart(rest.Sub(0, 0, w, chart), s, f)
		chart += gap
	}
	scatter(rest.Sub(0, chart, w, rest.H-chart), s, f)
	latencyRight(right, s, f, gap, stall)
}

// hasITL reports whether llmtop has measured gaps between tokens.
func hasITL(s *store.Snapshot) bool { return s.Latency.Of[store.ITL][metric.Session].Count > 0 }

// Measured reports whether llmtop has measured requests one by one, not only polled slots.
func Measured(s *store.Snapshot) bool {
	return slices.ContainsFunc(s.Requests, func(r *store.Request) bool { return !r.Polled && !s.Excluded(r) })
}

// noLatency is why there are no latencies.
const noLatency = "latencies: not reported by this engine"

// measureThem says how to measure latencies.
func measureThem(s *store.Snapshot) string {
	return "measure them with " + s.MeasuredBy() + " or llmtop bench"
}

// drawUnmeasured draws the view without measured requests: what the server counts and the polled slots, if any.
func drawUnmeasured(a grid.Area, s *store.Snapshot, f *pane.Frame, page Page) {
	if page == PageOverTime && drawTrends(a, s, f) {
		return
	}
	n := 0
	if len(s.Aggregates.Histograms) > 0 {
		n = percentileTable(a, s, f)
		n += bucketNote(a.Sub(0, n, a.W, a.H-n), s, f)
		n += 2
	}
	n += slotRequests(a.Sub(0, n, a.W, a.H-n), s, f)
	switch rest := a.Sub(0, n, a.W, a.H-n); {
	case n > 0:
		if !drawTrends(rest, s, f) {
			ratesIfRoom(rest, s, f)
		}
	case s.Distribution(store.E2EL, f.Window).Origin == event.NotReported:
		f.Absent(a, pane.Dim, noLatency, measureThem(s))
	case s.CallsOnly():
		f.Absent(a, pane.Dim, store.RequestsUnseen, "")
	case !f.Waiting(a, s):
		f.Absent(a, pane.Dim, "no request yet", f.Suggest)
	}
}

// ratesIfRoom draws the throughput chart below the latencies, if there is room.
func ratesIfRoom(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	if pts := f.Rates(s); a.H >= 6 && len(pts) >= 2 {
		pane.DrawRatesChart(a, f, pts)
	}
}

// heatmapFrom is the minimum height of the right half for the heatmap.
const heatmapFrom = 26

// fewRequests is the number of requests below which a histogram of TTFT is small.
const fewRequests = 8

// latencyRight draws the heatmap where there is room, the histograms and the stalls, one below another.
func latencyRight(a grid.Area, s *store.Snapshot, f *pane.Frame, gap, stall int) {
	heat, h := 0, min(a.H/3, 12)
	if !hasITL(s) {
		ttftHistogram(a.Sub(0, 0, a.W, h-gap), s, f)
		return
	}
	if a.H >= heatmapFrom {
		heat = a.H * 3 / 10
		h = min((a.H-heat)/3, 12)
		itlHeatmap(a.Sub(0, 0, a.W, heat-gap), s, f)
	}
	ttft := h
	if s.Latency.Of[store.TTFT][f.Window].Count < fewRequests {
		ttft = min(h, 4+gap)
	}
	ttftHistogram(a.Sub(0, heat, a.W, ttft-gap), s, f)
	itlHistogram(a.Sub(0, heat+ttft, a.W, h-gap), s, f)
	drawStalls(a.Sub(0, heat+ttft+h, a.W, a.H-heat-ttft-h), s, f, stall)
}

// latencyNarrow draws as many parts as fit, one below another.
func latencyNarrow(a grid.Area, s *store.Snapshot, f *pane.Frame, gap int) {
	n := percentileTable(a, s, f) + gap
	a = a.Sub(0, n, a.W, a.H-n)
	parts := []func(grid.Area, *store.Snapshot, *pane.Frame){itlChart, itlHistogram, scatter, ttftHistogram, itlHeatmap}
	if !hasITL(s) {
		parts = []func(grid.Area, *store.Snapshot, *pane.Frame){ttftHistogram, scatter}
	}
	const least = 5
	k := max(min((a.H+gap)/(least+gap), len(parts)), 1) // the last part has no gap below
	for i := range k {
		from, to := a.H*i/k, a.H*(i+1)/k
		parts[i](a.Sub(0, from, a.W, to-from-gap), s, f)
	}
}

// sloTargets are the targets in display order.
var sloTargets = [...]struct {
	name  string
	field table.Field
	which store.Misses
}{
	{"TTFT", table.TTFT, store.MissedTTFT},
	{"first answer", table.Answer, store.MissedAnswer},
	{"TPOT", table.TPOT, store.MissedTPOT},
	{"p99 ITL", table.ITL, store.MissedITL},
	{"E2EL", table.E2EL, store.MissedE2EL},
}

// anyTarget is the index after those of sloTargets, of what counts all of them.
const anyTarget = len(sloTargets)

// countCompliance counts the requests with each target, and with any, whose first token came in the window, and those that
// met it. Cold requests are omitted: the targets of TTFT and E2EL do not apply to them.
func countCompliance(s *store.Snapshot, w metric.Window) (all, met [anyTarget + 1]int) {
	for r := range s.CountedIn(w, false) {
		misses := r.Misses(s.Now)
		all[anyTarget]++
		if misses == 0 {
			met[anyTarget]++
		}
		for i, t := range sloTargets {
			if t.which != store.MissedTTFT && t.which != store.MissedAnswer && !t.field.Value(r, s.Now).OK() {
				continue
			}
			all[i]++
			if !misses.Has(t.which) {
				met[i]++
			}
		}
	}
	return all, met
}

// drawCompliance writes the targets and the share of requests that met them, the goodput and the number of stalls.
func drawCompliance(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	l := a.Line(0, 0)
	all, met := countCompliance(s, f.Window)
	share := func(i int) grid.Piece {
		st := pane.Good
		if met[i] < all[i] {
			st = pane.Bad
		}
		return grid.Piece{Style: st.With(grid.Bold), Words: metric.Percent(float64(met[i]) / float64(all[i]))}
	}
	targets := s.Latency.Targets
	if !targets.Any() {
		l.Put(pane.Dim, "no targets: set them with --slo")
	} else if !targets.BeyondTTFT() {
		l.Put(pane.Dim, "TTFT target ").Put(pane.Data, metric.Duration(int64(targets.TTFT)))
	} else {
		l.Put(pane.Dim, "targets")
		for i, target := range [...]time.Duration{targets.TTFT, targets.Answer, targets.TPOT, targets.ITL, targets.E2EL} {
			if target <= 0 {
				continue
			}
			l.Fit(grid.Piece{Style: pane.Dim, Words: "  " + sloTargets[i].name + " "}, grid.Piece{Style: pane.Data, Words: metric.Duration(int64(target))})
			if all[i] > 0 {
				l.Fit(grid.Piece{Words: " "}, share(i))
			}
		}
	}
	if n := all[anyTarget]; n > 0 && targets.Any() {
		words := "  met by "
		if targets.BeyondTTFT() {
			words = "  all met by "
		}
		l.Fit(grid.Piece{Style: pane.Dim, Words: words}, share(anyTarget), grid.Piece{Style: pane.Dim, Words: " of " + keptOf(n, s.Latency.Of[store.TTFT][f.Window].Count, "warm request")})
	}
	if g := s.Latency.Goodput; g.OK() {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "   goodput "}, grid.Piece{Style: pane.Loud, Words: metric.Rate(g.V) + "/s"})
		l.Fit(grid.Piece{Style: pane.Dim, Words: " last 1 min"})
	}
	if n := s.Latency.StallCount[f.Window]; n > 0 {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "   stalls "}, grid.Piece{Style: pane.Bad, Words: metric.Count(float64(n))})
	}
}

// drawCacheMisses writes what cache misses cost, and why most of it: "cache misses 31 % of prefill, 84 % of them: a
// timestamp differs, messages[0].content". It reports whether there is a cost.
func drawCacheMisses(l grid.Line, m store.CacheMisses) bool {
	if m.Lost <= 0 {
		return false
	}
	l.Put(pane.Dim, "cache misses ").Put(pane.Loud, metric.Percent(metric.Share(m.Lost.Seconds(), m.Prefill.Seconds()))).Put(pane.Dim, " of prefill")
	worst, part := &m.Kinds[0], ": "
	if len(m.Kinds) > 1 {
		part = ", " + metric.Percent(metric.Share(worst.Lost.Seconds(), m.Lost.Seconds())) + " of them: "
	}
	if l.Fit(grid.Piece{Style: pane.Dim, Words: part}, grid.Piece{Style: pane.Plain, Words: worst.Words()}) && worst.Place != "" {
		l.Fit(grid.Piece{Style: pane.Dim, Words: ", " + sanitize.Line(worst.Place)})
	}
	return true
}

// keptOf returns how many of all of the named kind are kept.
func keptOf(kept int, all uint64, name string) string {
	words := pane.CountOf(uint64(kept), name, name+"s")
	if uint64(kept) < all {
		return "the last " + words
	}
	return words
}

// itlChart draws the measured ITL per second.
func itlChart(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	t := itlTrend(s)
	t.draw(a, f)
}

// itlHeatmap draws the measured ITL over time.
func itlHeatmap(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	t := itlTrend(s)
	t.drawHeat(a, f)
}

// scatter draws TTFT by computed prompt tokens of every warm request, with a linear fit.
func scatter(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	points, fit := table.TTFTByPrompt(s)
	l := a.Line(0, 0)
	l.Put(pane.Heading, "TTFT by prompt").Gap(2)
	if len(points) == 0 {
		why := "no warm request with a known length yet"
		if slices.ContainsFunc(s.Requests, func(r *store.Request) bool { return r.TTFT.OK() && r.PromptTokens > 0 && r.AnyCached }) {
			why = "cached tokens not reported"
		}
		l.Put(pane.Dim, why)
		return
	}
	switch {
	case fit.NoTrend:
		l.Put(pane.Loud, "no trend").Fit(grid.Piece{Style: pane.Dim, Words: ", R² " + metric.Rate(fit.R2)})
	case fit.Meaningful && fit.Slope > 0:
		l.Put(pane.Loud, metric.Duration(int64(fit.Slope*1e9))).Put(pane.Dim, " per computed token")
		if fit.At0 >= 0 {
			l.Fit(grid.Piece{Style: pane.Dim, Words: ", intercept " + metric.Seconds(fit.At0)})
		}
		l.Fit(grid.Piece{Style: pane.Dim, Words: ", R² " + metric.Rate(fit.R2)})
	}
	if fit.NoTrend || fit.Meaningful && fit.Slope > 0 {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "; brighter: more requests"})
	}
	if a.H >= 5 && a.W >= 30 {
		drawScatter(a.Sub(0, 1, a.W, a.H-1), f, points, &fit)
	}
}

func drawScatter(a grid.Area, f *pane.Frame, points []table.Point, fit *table.Fit) {
	const axisWidth = 9
	gl := f.Skin.Glyphs
	topY, topX := grid.NiceTop(fit.MaxY*1e9), grid.NiceTop(fit.MaxX)
	plot := a.Sub(axisWidth, 0, a.W-axisWidth, a.H-1)
	if topY <= 0 || topX <= 0 || plot.H < 2 {
		return
	}
	place := func(x, y float64) (int, int) {
		return min(int(x/topX*float64(plot.W)), plot.W-1), plot.H - 1 - min(int(y*1e9/topY*float64(plot.H)), plot.H-1)
	}
	if fit.Meaningful {
		for x := range plot.W {
			at := (float64(x) + 0.5) / float64(plot.W) * topX
			if y := fit.At0 + fit.Slope*at; y >= 0 && y*1e9 <= topY {
				_, row := place(at, y)
				plot.Cell(x, row, grid.Fg(theme.SeriesP99), gl.Horizontal)
			}
		}
	}
	bins, most := make([]int, plot.W*plot.H), 1
	for _, p := range points {
		x, y := place(p.X, p.Y)
		bins[y*plot.W+x]++
		most = max(most, bins[y*plot.W+x])
	}
	for i, n := range bins {
		if n > 0 { // a single request has half the brightness
			share := 0.5 + 0.5*math.Log(float64(n))/math.Log(float64(most)+1)
			plot.Cell(i%plot.W, i/plot.W, grid.Fg(theme.Heat(share)), gl.Swatch)
		}
	}
	write := pane.AxisLabel(pane.TimeAxis, topY)
	a.Right(axisWidth-2, 0, pane.Dim, write(topY, topY))
	a.Right(axisWidth-2, plot.H-1, pane.Dim, write(0, topY))
	for y := range plot.H {
		a.Cell(axisWidth-1, y, grid.Fg(theme.Border), gl.Vertical)
	}
	a.Text(axisWidth, a.H-1, pane.Dim, "0")
	a.Right(a.W, a.H-1, pane.Dim, metric.Count(topX)+" tokens")
}
