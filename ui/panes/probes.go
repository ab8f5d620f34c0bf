package panes

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// probeWords summarises llmtop's own probe requests.
func probeWords(p *store.Probes) (out []grid.Piece) {
	put := func(st grid.Style, words string) { out = append(out, grid.Piece{Style: st, Words: words}) }
	put(dim, "by probe ")
	for _, n := range []struct {
		name string
		r    event.Reading
	}{{"TTFT", p.TTFT}, {"TPOT", p.TPOT}, {"E2EL", p.E2EL}} {
		if n.r.OK() {
			put(dim, " "+n.name+" ")
			put(data, metric.Seconds(n.r.V))
		}
	}
	switch {
	case p.Count == 0:
		put(dim, " first probe in flight")
	case p.Count == p.Failed:
		put(bad, " "+strconv.Itoa(p.Failed)+" of "+strconv.Itoa(p.Count)+" failed")
	default:
		put(dim, "  medians of "+strconv.Itoa(p.Count-p.Failed))
		if p.Failed > 0 {
			put(bad, "  "+strconv.Itoa(p.Failed)+" failed")
		}
	}
	return out
}

// probeLine writes the probe summary into row y; false if there are no probes.
func (c *Ctx) probeLine(a grid.Area, y int, s *store.Snapshot) bool {
	p := s.Probes()
	if p.Last == nil {
		return false
	}
	l := a.Line(0, y)
	for _, piece := range probeWords(&p) {
		l.Fit(piece)
	}
	return true
}

// probes fills a pane with the probe requests, the newest first, each with a bar of its TTFT; false without any.
func (c *Ctx) probes(a grid.Area, s *store.Snapshot) bool {
	if !c.probeLine(a, 0, s) {
		return false
	}
	a.Elide(0, 1, a.W, dim, firstFitting(a.W, "measured by llmtop's own small requests; the server does not report these",
		"measured by llmtop's own requests"), c.Skin.Glyphs.Ellipsis)
	var shown []*store.Request
	top := 0.0
	for _, r := range s.Requests {
		if r.Probe && len(shown) < a.H-3 {
			shown = append(shown, r)
			if r.TTFT.OK() {
				top = max(top, r.TTFT.V)
			}
		}
	}
	const names, numbers = 18, 11
	for i, r := range shown {
		y := i + 3
		a.Text(0, y, dim, "#"+strconv.Itoa(int(r.ID)))
		a.Right(names-2, y, dim, metric.Duration(int64(s.Now-r.Enqueued))+" ago")
		switch {
		case r.TTFT.OK():
			c.stack(a.Sub(names, y, a.W-names-numbers, 1), 0, r, top)
			a.Right(a.W, y, data, metric.Seconds(r.TTFT.V))
		case r.State.Final():
			a.Elide(names, y, a.W-names, bad, r.Reason, c.Skin.Glyphs.Ellipsis)
		default:
			a.Text(names, y, dim, "in flight")
		}
	}
	return true
}
