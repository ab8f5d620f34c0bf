package panes

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// gaugeColumns are where the columns of the table of gauges end; 0: there is no room for it.
type gaugeColumns struct {
	now, more, course, token, usual, rho int
}

// The widths of the columns of the table of gauges.
const (
	gaugeName  = 14
	gaugeNow   = 12
	gaugeMore  = 27
	gaugeToken = 12
	gaugeUsual = 11
	gaugeRho   = 8
	leastSpark = 12
)

func columnsOf(w int) (k gaugeColumns) {
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
	usual, more := take(gaugeUsual), take(gaugeMore)
	x := k.now
	if more {
		x += gaugeMore
		k.more = x
	}
	x += left
	k.course = x
	if token {
		x += gaugeToken
		k.token = x
	}
	if usual {
		x += gaugeUsual
		k.usual = x
	}
	if rho {
		x += gaugeRho
		k.rho = x
	}
	return k
}

// gaugeTable lists every gauge: its value now, its course, what it was when the token came and what it usually is, and how it goes together
// with ITL. box is the pane that the table is in.
func (c *Ctx) gaugeTable(a, box grid.Area, at *store.HostPoint, v *RequestView, s *store.Snapshot) {
	if a.H < 2 {
		return
	}
	pts := s.Host.Within(c.Window, s.Now)
	sums := &c.Memory.gauges
	sums.update(pts)
	k := columnsOf(a.W)
	c.gaugeHeads(a, k, v, at)
	list, groups := c.gaugeList(s), 0
	for i := range list {
		if list[i].group != "" {
			groups++
		}
	}
	body := a.Sub(0, 1, a.W, a.H-1)
	spread := body.H >= len(list)+groups-1 // an empty row between groups
	c.Scroll = max(min(c.Scroll, len(list)-body.H), 0)
	y := 0
	for i := range list[c.Scroll:] {
		r := &list[c.Scroll+i]
		if spread && r.group != "" && i > 0 {
			y++
		}
		if y >= body.H {
			break
		}
		c.gaugeRow(body.Sub(0, y, body.W, 1), r, k, at, sums, s)
		y++
	}
	c.gaugeFoot(box, len(list)-c.Scroll-body.H, sums, k)
}

// gaugeHeads writes what the columns are.
func (c *Ctx) gaugeHeads(a grid.Area, k gaugeColumns, v *RequestView, at *store.HostPoint) {
	a.Right(k.now, 0, head, "now")
	from := max(k.now, k.more)
	a.Text(from+1, 0, head, "course")
	if k.course-from > 24 {
		a.Text(from+9, 0, dim, "1 column = 1 s")
	}
	if k.token > 0 {
		words := "token"
		if at != nil && v.Request != nil {
			words += " " + itoa(v.Token)
		}
		a.Right(k.token, 0, head, words)
	}
	if k.usual > 0 {
		a.Right(k.usual, 0, head, "usual")
	}
	if k.rho > 0 {
		a.Right(k.rho, 0, head, c.rhoName()+" ITL")
	}
}

func (c *Ctx) rhoName() string {
	if c.Skin.Glyphs.ASCII {
		return "rho"
	}
	return "ρ"
}

// gaugeRow draws one gauge.
func (c *Ctx) gaugeRow(a grid.Area, r *gaugeRow, k gaugeColumns, at *store.HostPoint, sums *gaugeSums, s *store.Snapshot) {
	a.Text(0, 0, dim, r.name)
	if r.gpu > 0 {
		l := a.Line(gaugeName+1, 0)
		gpuWords(&l, &s.Host.GPUs[r.gpu-1])
		return
	}
	now, or := r.reading(c, s)
	if !now.OK() {
		a.Elide(max(k.now-grid.Width(or), gaugeName), 0, a.W-gaugeName, dim, or, c.Skin.Glyphs.Ellipsis)
		return
	}
	a.Right(k.now, 0, loud, r.write(now.V))
	if k.more > 0 {
		a.Elide(k.now+2, 0, gaugeMore-3, dim, r.words(c, s), c.Skin.Glyphs.Ellipsis)
	}
	if r.alone != nil {
		return
	}
	c.gaugeCourse(a.Sub(max(k.now, k.more)+1, 0, k.course-max(k.now, k.more)-1, 1), r, s)
	usual := sums.usual[r.gauge]
	if k.usual > 0 && !math.IsNaN(usual) {
		a.Right(k.usual, 0, text, r.write(usual))
	}
	if k.token > 0 && at != nil && !math.IsNaN(at.V[r.gauge]) {
		a.Right(k.token, 0, unusual(at.V[r.gauge], usual), r.write(at.V[r.gauge]))
	}
	if k.rho > 0 {
		words, st := rhoWords(sums.with[r.gauge])
		a.Right(k.rho, 0, st, words)
	}
}

// gaugeCourse draws the last samples.
func (c *Ctx) gaugeCourse(a grid.Area, r *gaugeRow, s *store.Snapshot) {
	pts := s.Host.Series
	n := min(len(pts), a.W)
	pts = pts[len(pts)-n:]
	at := func(i int) float64 { return pts[i].V[r.gauge] }
	a.Spark(0, 0, a.W, 1, n, at, highest(n, at), r.role(), c.Skin.Glyphs)
}

// unusual is the style of a value that a token was made under: twice the usual, or half of it, stands out.
func unusual(v, usual float64) grid.Style {
	if v > 2*usual || v < usual/2 {
		return watch.With(grid.Bold)
	}
	return text
}

// rhoWords is a coefficient with its sign; one that chance would hardly give stands out.
func rhoWords(r metric.Correlation) (string, grid.Style) {
	if !r.Rho.OK() {
		return "-", dim
	}
	words := strconv.FormatFloat(r.Rho.V, 'f', 2, 64)
	if r.Rho.V >= 0 {
		words = "+" + words
	}
	if r.Strong() {
		return words, watch.With(grid.Bold)
	}
	return words, dim
}

// gaugeFoot says in the lower border what the correlation is and what it rests on, and how many rows are below, in the first words for which
// there is room.
func (c *Ctx) gaugeFoot(box grid.Area, below int, sums *gaugeSums, k gaugeColumns) {
	more := ""
	if below > 0 {
		more = itoa(below) + " more below  "
	}
	if k.rho == 0 {
		c.foot(box, dim, more)
		return
	}
	rho, n := c.rhoName(), itoa(sums.most)+" samples with tokens"
	long, short := rho+": Spearman, with the mean ITL of the same second; "+n+"; bright: hardly by chance", rho+": Spearman; "+n
	if sums.most < metric.LeastPairs {
		few := ": too few samples with tokens, " + itoa(sums.most) + " of " + itoa(metric.LeastPairs)
		long, short = rho+few+"; w for a longer window", rho+few
	}
	for _, words := range [...]string{more + long, more + short, more} {
		if c.foot(box, dim, words) > 0 {
			return
		}
	}
}
