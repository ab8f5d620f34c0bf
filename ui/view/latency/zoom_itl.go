package latency

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// ZoomITL draws the ITL chart with the percentiles of every window, the gaps of the current request, and the stalls
// with their causes, the selected one marked.
func ZoomITL(a grid.Area, s *store.Snapshot, f *pane.Frame, selected int) {
	if !zoomsITL(s) {
		DrawITL(a, s, f)
		return
	}
	in := f.Box(a, "every token, "+f.Window.String()+"; pacing excluded")
	drawGapStats(in, s, f, 0, s.Latency.Of[store.ITL][f.Window])
	lower := min(max(in.H/2, 8), in.H-6)
	t := itlTrend(s)
	t.drawChart(in.Sub(0, 2, in.W, in.H-lower-5), f)
	drawStrip(in.Sub(0, in.H-lower-2, in.W, 2), f, s.Current)
	b := in.Sub(0, in.H-lower+1, in.W, lower-1)
	third := b.W / 3
	drawWindows(b.Sub(0, 0, third-2, b.H), s, f)
	pane.DrawSplit(b.Sub(0, windowRows+1, third-2, b.H-windowRows-1), f, s.Current)
	stalls := max(b.W-2*third, min(stallsWidth(s), b.W-third-leastHistogram))
	drawHistogram(b.Sub(third, 0, b.W-third-stalls-2, b.H), f, s.Current)
	drawStalls(b.Sub(b.W-stalls, 0, stalls, b.H), s, f, selected)
	drawChartKey(a, f)
}

func zoomsITL(s *store.Snapshot) bool { return s.Current != nil && len(s.Current.Gaps) > 0 }

// ListsStalls reports whether the ITL pane in full screen lists stalls.
func ListsStalls(s *store.Snapshot) bool { return zoomsITL(s) && len(s.Latency.Stalls) > 0 }

// windowRows is the height of the table of windows.
const windowRows = 9

// drawWindows draws the ITL percentiles of each window.
func drawWindows(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	const w = 9
	a.Text(0, 0, pane.Heading, "ITL")
	names := [...]string{"p50", "p90", "p95", "p99", "max", "mean"}
	for i, n := range names {
		a.Text(0, 2+i, pane.Dim, n)
	}
	a.Text(0, 2+len(names), pane.Dim, "tokens")
	for k := range metric.NumWindows {
		x := 7 + (int(k)+1)*(w+1)
		st := pane.Dim
		if k == f.Window {
			st = grid.Fg(theme.Accent)
		}
		if x > a.W {
			return
		}
		a.Right(x, 1, st, strings.TrimPrefix(k.String(), "last "))
		sum := s.Latency.Of[store.ITL][k]
		if sum.Count == 0 {
			a.Right(x, 2, pane.Dim, "-")
			continue
		}
		for i, v := range [...]int64{sum.P50, sum.P90, sum.P95, sum.P99, sum.Max, int64(sum.Mean)} {
			a.Right(x, 2+i, pane.Data, metric.Duration(v))
		}
		a.Right(x, 2+len(names), pane.Plain, metric.Count(float64(sum.Count)))
	}
}

// drawHistogram draws the distribution of the kept gaps of a request in equal bins up to stripTop times the median; the
// last bin holds all longer gaps.
func drawHistogram(a grid.Area, f *pane.Frame, r *store.Request) {
	a.Text(0, 0, pane.Heading, "Gaps of #"+strconv.Itoa(int(r.ID))+", last "+strconv.Itoa(len(r.Gaps)))
	median := float64(r.ITL.P50)
	n := min(a.H-1, 16)
	if n < 2 || median <= 0 {
		return
	}
	bins, most := make([]int, n), 0
	for _, g := range r.Gaps {
		k := min(int(float64(g)/(pane.StripTop*median)*float64(n-1)), n-1)
		bins[k]++
		most = max(most, bins[k])
	}
	for i, b := range bins {
		from := float64(i) / float64(n-1) * pane.StripTop * median
		lead := "  "
		if i == n-1 {
			lead = "> "
		}
		a.Right(11, 1+i, pane.Dim, lead+metric.Duration(int64(from)))
		st := pane.GapStyle(from / median)
		if b > 0 {
			a.Bar(12, 1+i, a.W-12-6, float64(b)/float64(most), st.FG, f.Skin.Colour(), f.Skin.Glyphs)
			a.Right(a.W, 1+i, pane.Plain, strconv.Itoa(b))
		}
	}
}

// leastHistogram is the width that the distribution of gaps keeps beside the causes of stalls.
const leastHistogram = 24

// stallsWidth returns the width in which drawStalls cuts no cause.
func stallsWidth(s *store.Snapshot) (w int) {
	for i := range s.Latency.Stalls {
		v := &s.Latency.Stalls[i]
		w = max(w, len("00:00:00  1.00 ms  #")+len(strconv.Itoa(int(v.Request)))+len(stallToken)+len(" 1000  ")+grid.Width(v.Words()))
	}
	return w
}

// stallToken stands before the number of a token where it takes no room from a cause.
const stallToken = " token"

// drawStalls lists the last stalls with their causes, newest first, and marks the selected one.
func drawStalls(a grid.Area, s *store.Snapshot, f *pane.Frame, selected int) {
	a.Text(0, 0, pane.Heading, "Stalls, newest first")
	if len(s.Latency.Stalls) == 0 {
		a.Text(0, 1, pane.Good, string(f.Skin.Glyphs.Good)+" none")
		return
	}
	first, whole := max(selected-(a.H-2), 0), stallsWidth(s)
	for i := range min(len(s.Latency.Stalls)-first, a.H-1) {
		v := s.Latency.Stalls[len(s.Latency.Stalls)-1-first-i]
		l := a.Line(0, 1+i)
		if a.W >= whole-len(stallToken) { // a cause is worth more than the time
			l.Put(pane.Dim, pane.Clock(pane.SessionTime(s, v.At)))
		}
		l.Tail(9, pane.Bad, metric.Duration(int64(v.Gap))).Put(pane.Dim, "  #"+strconv.Itoa(int(v.Request)))
		if a.W >= whole {
			l.Put(pane.Dim, stallToken)
		}
		l.Tail(5, pane.Dim, strconv.Itoa(v.Index)).Gap(2)
		a.Elide(l.X, l.Y, max(l.Room(), 0), pane.Plain, v.Words(), f.Skin.Glyphs.Ellipsis)
		if first+i == selected {
			pane.SelectRow(a, f.Skin, l.Y)
		}
	}
}
