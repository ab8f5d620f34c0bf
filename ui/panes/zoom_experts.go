package panes

import (
	"github.com/llmtop/llmtop/profiler/metric"
	"strconv"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// zoomExperts gives the map the screen, with a table of each layer's balance beside it where there is room.
func zoomExperts(a grid.Area, s *store.Snapshot, c *Ctx) {
	covers := c.Phase.String() + ", " + c.Window.String()
	h := hits(s, c)
	if h == nil {
		c.noExperts(c.frame(a, covers), s)
		return
	}
	inside := a.Inset(2, 1)
	labels := grid.Width("L"+itoa(s.Experts.Layers-1)) + 1
	side := 0
	if inside.W >= s.Experts.Experts+labels+balanceWidth+2 {
		side = balanceWidth + 2
	}
	m := fit(s.Experts, h, inside.W-labels-side, inside.H-4, c)
	if words := m.scale(); words != "" {
		covers += " " + string(c.Skin.Glyphs.Bullet) + " " + words
	}
	in := c.frame(a, covers)
	drawExpertNumbers(in, labels, &m)
	m.draw(in.Sub(labels, 1, in.W-labels, m.rowCount), c)
	drawLayerNames(in.Sub(0, 1, labels+m.cols, m.rowCount), &m, 0, labels, c)
	if side > 0 {
		drawBalance(in.Sub(in.W-balanceWidth, 0, balanceWidth, in.H-3), &m, h)
	}
	l := in.Line(0, in.H-2)
	l.Put(dim, "tokens ").Put(text, metric.Count(float64(h.Tokens)))
	if n := s.Experts.EveryN; n > 1 {
		l.Put(watch, "  sampled: 1 step of "+itoa(n))
	}
	l.Put(dim, "  (w: window, e: phase)")
	drawWorst(in, in.H-1, h, c)
	drawHeatScale(a, h, s.Experts, c)
}

// balanceWidth is the width of the table of layer balance.
const balanceWidth = 62

// drawBalance lists max/mean, coefficient of variation, entropy, idle experts and the hottest and coldest of each layer. A
// map whose rows hold several layers has no room for all; the table then begins at the first.
func drawBalance(a grid.Area, m *heatmap, h *store.Hits) {
	a.Right(10, 0, head, "max/mean")
	a.Right(16, 0, head, "CV")
	a.Right(25, 0, head, "entropy")
	a.Right(31, 0, head, "idle")
	a.Text(35, 0, head, "hot")
	a.Text(49, 0, head, "cold")
	step := max(m.tall, 1)
	for i, v := range h.Layers {
		y := 1 + i*step
		if y >= a.H {
			return
		}
		a.Text(0, y, dim, "L"+itoa(i))
		if v.Total == 0 {
			a.Text(5, y, dim, "no pick")
			continue
		}
		a.Right(10, y, imbalanceStyle(v.MaxMean), metric.Rate(v.MaxMean))
		a.Right(16, y, text, metric.Rate(v.CV))
		a.Right(25, y, text, strconv.FormatFloat(v.Entropy, 'f', 3, 64))
		st := dim
		if v.Dead > 0 {
			st = watch
		}
		a.Right(31, y, st, itoa(v.Dead))
		for k, e := range v.Hot {
			a.Right(38+4*k, y, text, itoa(e))
		}
		for k, e := range v.Cold {
			a.Right(53+4*k, y, dim, itoa(e))
		}
	}
}
