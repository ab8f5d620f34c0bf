package panes

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// zoomExperts gives the map the screen, with a table of each layer's balance beside it where there is room, and below it
// the map of another phase where both fit cell by cell.
func zoomExperts(a grid.Area, s *store.Snapshot, c *Ctx) {
	h := hits(s, c, c.Phase)
	if h == nil {
		c.noExperts(c.frame(a, c.Phase.String()+", "+c.Window.String()), s)
		return
	}
	in := a.Inset(2, 1)
	maps, rows := 1, in.H
	if need := s.Experts.Layers + 5; in.H >= 2*need {
		maps, rows = 2, in.H/2
	}
	m := c.expertMap(in.Sub(0, 0, in.W, rows), s, h, false)
	c.frame(a, m.covers(c, c.Phase)...)
	c.expertMap(in.Sub(0, 0, in.W, rows), s, h, true)
	drawHeatScale(a, h, c)
	if maps < 2 {
		return
	}
	other := metric.Prompt
	if c.Phase == metric.Prompt {
		other = metric.Decode
	}
	lower := in.Sub(0, rows, in.W, in.H-rows)
	lower.Text(0, 0, head, other.String()+", "+c.Window.String())
	if h := hits(s, c, other); h != nil {
		c.expertMap(lower.Sub(0, 1, in.W, lower.H-1), s, h, true)
	} else {
		lower.Text(0, 1, dim, "no token")
	}
}

// expertMap lays out, and draws if told to, one map with its table and its sentences.
func (c *Ctx) expertMap(in grid.Area, s *store.Snapshot, h *store.Hits, draw bool) heatmap {
	labels := grid.Width("L"+itoa(s.Experts.Layers-1)) + 1
	side := 0
	if in.W >= s.Experts.Experts+labels+balanceWidth+3 {
		side = balanceWidth + 3
	}
	m := fit(s.Experts, h, in.W-labels-side, in.H-4, 6, c)
	if !draw {
		return m
	}
	drawExpertNumbers(in, labels, &m)
	m.draw(in.Sub(labels, 1, in.W-labels, m.rowCount), c)
	drawLayerNames(in.Sub(0, 1, labels+m.cols, m.rowCount), &m, 0, labels, c)
	if side > 0 {
		drawBalance(in.Sub(labels+m.cols+3, 0, balanceWidth, m.rowCount+1), &m, h)
	}
	y := m.rowCount + 1
	if in.H > y+2 {
		y++
	}
	drawWorst(in, y, h, c)
	drawSpread(in, y+1, h, s.Experts)
	return m
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
