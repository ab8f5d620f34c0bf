package latency

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// DrawITL draws the gaps of every token: percentiles, a chart, and the strip of the current request. Without them it draws
// the latencies that the server counts, or else the TPOT of polled slots, and says so in its title.
func DrawITL(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	sum := s.Latency.Of[store.ITL][f.Window]
	if s.Current == nil || len(s.Current.Gaps) == 0 && s.Latency.Of[store.ITL][metric.Session].Count == 0 {
		drawWithoutGaps(a, s, f)
		return
	}
	in := f.Box(a, "every token, "+f.Window.String())
	drawGapStats(in, s, f, 0, sum)
	strip := 1
	switch {
	case in.H >= 16:
		strip = 3
	case in.H >= 10:
		strip = 2
	case in.H < 5: // the chart does not fit
		strip = max(in.H-1, 1)
	}
	if in.H >= 5 {
		t := itlTrend(s)
		t.drawChart(in.Sub(0, 1, in.W, in.H-1-strip), f)
	}
	if in.H >= 2 {
		drawStrip(in.Sub(0, in.H-strip, in.W, strip), f, s.Current)
	}
	drawChartKey(a, f)
}

// drawWithoutGaps draws the pane without measured gaps.
func drawWithoutGaps(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	slots := len(slotsOf(s)) > 0
	switch {
	case len(s.Aggregates.Histograms) > 0:
		f.Title = "Latency"
		title := "engine histograms, "
		if !buckets(s) {
			title = "means that the engine counts, "
		}
		in := f.Box(a, title+f.Window.String())
		n := percentileTable(in, s, f) + 1
		rest := in.Sub(0, n, in.W, in.H-n)
		switch {
		case slots:
			drawRequestTable(rest, slotColumns(s), slotsOf(s), 0)
		case !drawTrends(rest, s, f):
			ratesIfRoom(rest, s, f)
		}
	case slots:
		f.Title = "TPOT"
		in := f.Box(a, "from slot progress between two polls, newest first", "newest first")
		drawRequestTable(in, slotColumns(s), slotsOf(s), 0)
	case s.Distribution(store.ITL, f.Window).Origin == event.NotReported:
		f.Absent(f.Box(a, ""), pane.Dim, noITL, measureThem(s))
	default:
		switch in := f.Box(a, "every token, "+f.Window.String()); {
		case f.Waiting(in, s):
		case s.Current != nil && !s.Engine.Caps.Has(event.CapTokens):
			f.Absent(in, pane.Dim, noITL, "")
		default:
			f.Absent(in, pane.Dim, "no token yet", f.Suggest)
		}
	}
}

const noITL = "ITL: not reported by this engine"

// drawGapStats writes the percentiles of the window and the number of stalls at fixed columns.
func drawGapStats(a grid.Area, s *store.Snapshot, f *pane.Frame, y int, sum metric.Summary) {
	if sum.Count == 0 {
		a.Text(0, y, pane.Dim, "no token in the "+f.Window.String()+": press w for a longer window")
		return
	}
	l := a.Line(0, y)
	l.Put(grid.Fg(theme.SeriesP50), "p50 ").Tail(7, pane.Loud, metric.Duration(sum.P50)).Gap(2)
	if a.W >= 50 {
		l.Put(pane.Dim, "p95 ").Tail(7, pane.Data, metric.Duration(sum.P95)).Gap(2)
	}
	l.Put(grid.Fg(theme.SeriesP99), "p99 ").Tail(7, pane.Loud, metric.Duration(sum.P99)).Gap(2)
	if a.W >= 72 {
		l.Put(pane.Dim, "max ").Tail(7, pane.Data, metric.Duration(sum.Max)).Gap(2)
	}
	n, st := s.Latency.StallCount[f.Window], pane.Plain
	if n > 0 {
		st = pane.Data
	}
	for _, v := range s.Verdicts { // stalls that no insight names are within the limits
		if v.Topic == "token gaps" || v.Topic == "lost time" {
			st = pane.Bad
		}
	}
	words := "stalls " + metric.Count(float64(n))
	if l.Room() >= len(words) {
		a.Right(a.W, y, st, words)
	}
}

// drawChartKey writes the scales of the chart and the strip into the border.
func drawChartKey(a grid.Area, f *pane.Frame) {
	if a.H >= 9 {
		f.Foot(a, pane.Dim, "column: 1 s, in the strip 1 token; "+f.AxisWords()+"; "+string(f.Skin.Glyphs.Stall)+": stall")
	}
}

// drawStrip draws the gaps of a request token by token, the newest at the right, with its TPOT. A full column is
// stripTop times the median gap.
func drawStrip(a grid.Area, f *pane.Frame, r *store.Request) {
	name := "#" + strconv.Itoa(int(r.ID))
	x0 := max(grid.Width(name)+1, 6)
	if a.H > 1 && a.W > 40 {
		a.Text(0, a.H-2, pane.Dim, name)
		l := a.Line(0, a.H-1)
		l.Put(pane.Dim, "TPOT ").Put(pane.Data, metric.Reading(r.TPOT, metric.Seconds))
		x0 = max(l.X+1, 14)
	} else {
		a.Text(0, a.H-1, pane.Dim, name)
	}
	strip := a.Sub(x0, 0, a.W-x0, a.H)
	n := min(len(r.Gaps), strip.W)
	median := float64(r.ITL.P50)
	if n == 0 || r.ITL.Count == 0 || median <= 0 {
		words := "no gap between tokens yet"
		if r.State.Final() {
			words = "no gap between its tokens"
		}
		strip.Text(0, a.H-1, pane.Dim, words)
		return
	}
	for i, gap := range r.Gaps[len(r.Gaps)-n:] {
		ratio := float64(gap) / median
		strip.Column(strip.W-n+i, a.H-1, a.H, ratio/pane.StripTop, pane.GapStyle(ratio), f.Skin.Glyphs)
	}
}
