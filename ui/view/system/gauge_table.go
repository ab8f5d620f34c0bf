package system

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/request"
)

// gaugeColumns holds the end column of each column of the gauge table; 0 hides it.
type gaugeColumns struct {
	now, detail, trend, token, typical, rho int
}

// Column widths of the gauge table.
const (
	gaugeName    = 14
	gaugeNow     = 12
	gaugeDetail  = 27
	gaugeToken   = 13
	gaugeTypical = 13
	gaugeRho     = 8
	leastSpark   = 12
)

// gaugeColumnsFor returns the columns that fit into w cells; the trend takes the rest.
func gaugeColumnsFor(w int) (k gaugeColumns) {
	k.now = gaugeName + gaugeNow
	left := w - k.now
	take := func(width int) bool {
		if left-width < leastSpark {
			return false
		}
		left -= width
		return true
	}
	token, rho := take(gaugeToken), take(gaugeRho)
	typical, detail := take(gaugeTypical), take(gaugeDetail)
	x := k.now
	if detail {
		x += gaugeDetail
		k.detail = x
	}
	x += left
	k.trend = x
	if token {
		x += gaugeToken
		k.token = x
	}
	if typical {
		x += gaugeTypical
		k.typical = x
	}
	if rho {
		x += gaugeRho
		k.rho = x
	}
	return k
}

// gaugeTable lists every gauge: its current value, its trend, its value when the selected token came, its median over
// the window, and its correlation with ITL. box is the pane around the table.
func gaugeTable(a, box grid.Area, s *store.Snapshot, f *pane.Frame, at *store.HostPoint, m *Table, v *request.View) {
	if a.H < 2 {
		return
	}
	pts := s.Host.SamplesWithin(f.Window, s.Now)
	sums := &m.sums
	sums.update(pts)
	k := gaugeColumnsFor(a.W)
	gaugeHeads(a, s, f, k, v, at)
	list, groups := gaugeList(m.rows[:0], s), 0
	m.rows = list
	for i := range list {
		if list[i].first {
			groups++
		}
	}
	body := a.Sub(0, 1, a.W, a.H-1)
	spread := body.H >= len(list)+groups-1 // blank row between groups
	last := max(len(list)-body.H, 0)
	m.First = max(min(m.First, max(last, m.hidden)), 0)
	y, from := 0, min(m.First, last)
	for i := range list[from:] {
		r := &list[from+i]
		if spread && r.first && i > 0 {
			y++
		}
		if y >= body.H {
			break
		}
		drawGauge(body.Sub(0, y, body.W, 1), s, f, r, k, at, sums)
		y++
	}
	gaugeFoot(box, f, len(list)-from-body.H, sums, k)
}

// gaugeHeads writes the column titles.
func gaugeHeads(a grid.Area, s *store.Snapshot, f *pane.Frame, k gaugeColumns, v *request.View, at *store.HostPoint) {
	now := "now"
	if sampleAge(s) != "" {
		now = "last"
	}
	a.Right(k.now, 0, pane.Heading, now)
	from := max(k.now, k.detail)
	a.Text(from+1, 0, pane.Heading, "trend")
	if k.trend-from > 24 {
		a.Text(from+9, 0, pane.Dim, "1 column = 1 s")
	}
	if k.token > 0 {
		words := "token"
		if at != nil && v.Request != nil {
			words += " " + strconv.Itoa(v.Token)
		}
		a.Right(k.token, 0, pane.Heading, words)
	}
	if k.typical > 0 {
		a.Right(k.typical, 0, pane.Heading, "typical")
	}
	if k.rho > 0 {
		a.Right(k.rho, 0, pane.Heading, rhoName(f)+" ITL")
	}
}

func rhoName(f *pane.Frame) string {
	if f.Skin.Glyphs.ASCII {
		return "rho"
	}
	return "ρ"
}

// drawGauge draws one gauge.
func drawGauge(a grid.Area, s *store.Snapshot, f *pane.Frame, r *gaugeRow, k gaugeColumns, at *store.HostPoint, sums *gaugeSums) {
	a.Text(0, 0, pane.Dim, r.name)
	now, or := r.reading(s, f)
	if !now.OK() {
		a.Elide(max(k.now-grid.Width(or), gaugeName), 0, a.W-gaugeName, pane.Dim, or, f.Skin.Glyphs.Ellipsis)
		return
	}
	a.Right(k.now, 0, pane.Loud, r.write(now.V))
	if k.detail > 0 {
		a.Elide(k.now+2, 0, gaugeDetail-3, pane.Dim, r.detailWords(s, f), f.Skin.Glyphs.Ellipsis)
	}
	if r.noTrend != nil {
		return
	}
	gaugeTrend(a.Sub(max(k.now, k.detail)+1, 0, k.trend-max(k.now, k.detail)-1, 1), s, f, r)
	typical := sums.typical[r.gauge]
	if k.typical > 0 && !math.IsNaN(typical) {
		a.Right(k.typical, 0, pane.Plain, r.writeShort(typical))
	}
	if k.token > 0 && at != nil && !math.IsNaN(at.V[r.gauge]) {
		v, st := at.V[r.gauge], pane.Plain
		if sums.atypical(r.gauge, v) {
			st = pane.Watch.With(grid.Bold)
		}
		a.Right(k.token, 0, st, r.writeShort(v))
	}
	if k.rho > 0 {
		words, st := formatRho(sums.itlRho[r.gauge])
		a.Right(k.rho, 0, st, words)
	}
}

// gaugeTrend draws the last samples, one per column.
func gaugeTrend(a grid.Area, s *store.Snapshot, f *pane.Frame, r *gaugeRow) {
	pts := s.Host.Series
	n := min(len(pts), a.W)
	pts = pts[len(pts)-n:]
	at := func(i int) float64 { return pts[i].V[r.gauge] }
	a.Spark(0, 0, a.W, 1, n, at, pane.ScaleTop(n, at), r.role(), f.Skin)
}

// formatRho formats a correlation coefficient with its sign; a significant one is highlighted.
func formatRho(r metric.Correlation) (string, grid.Style) {
	if !r.Rho.OK() {
		return "-", pane.Dim
	}
	words := strconv.FormatFloat(r.Rho.V, 'f', 2, 64)
	if r.Rho.V >= 0 {
		words = "+" + words
	}
	if r.Strong() {
		return words, pane.Watch.With(grid.Bold)
	}
	return words, pane.Dim
}

// gaugeFoot writes into the lower border how the correlation is computed, its number of samples, and the number of rows
// below, in the longest form that fits.
func gaugeFoot(box grid.Area, f *pane.Frame, below int, sums *gaugeSums, k gaugeColumns) {
	more := ""
	if below > 0 {
		more = strconv.Itoa(below) + " more below  "
	}
	if k.rho == 0 {
		f.Foot(box, pane.Dim, more)
		return
	}
	rho, n := rhoName(f), strconv.Itoa(sums.mostPairs)+" samples with tokens"
	long, short := rho+": Spearman correlation with the mean ITL of the same second; "+n+"; bright: significant", rho+": Spearman; "+n
	if sums.mostPairs < metric.LeastPairs {
		few := ": too few samples with tokens, " + strconv.Itoa(sums.mostPairs) + " of " + strconv.Itoa(metric.LeastPairs)
		long, short = rho+few+"; press w for a longer window", rho+few
	}
	for _, words := range [...]string{more + long, more + short, more} {
		if f.Foot(box, pane.Dim, words) > 0 {
			return
		}
	}
}
