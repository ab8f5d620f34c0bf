package latency

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// probeWords summarises llmtop's own probe requests.
func probeWords(p *store.Probes) (out []grid.Piece) {
	put := func(st grid.Style, words string) { out = append(out, grid.Piece{Style: st, Words: words}) }
	put(pane.Dim, "by probe ")
	for _, n := range []struct {
		name string
		r    event.Reading
	}{{"TTFT", p.TTFT}, {"TPOT", p.TPOT}, {"E2EL", p.E2EL}} {
		if n.r.OK() {
			put(pane.Dim, " "+n.name+" ")
			put(pane.Data, metric.Seconds(n.r.V))
		}
	}
	switch {
	case p.Count == 0:
		put(pane.Dim, " first probe in flight")
	case p.Count == p.Failed:
		put(pane.Bad, " "+strconv.Itoa(p.Failed)+" of "+strconv.Itoa(p.Count)+" failed")
	default:
		put(pane.Dim, "  medians of "+strconv.Itoa(p.Count-p.Failed))
		if p.Failed > 0 {
			put(pane.Bad, "  "+strconv.Itoa(p.Failed)+" failed")
		}
	}
	return out
}

// probeLine writes the probe summary into row y; false if there are no probes.
func probeLine(a grid.Area, s *store.Snapshot, f *pane.Frame, y int) bool {
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

// drawProbes fills a pane with the probe requests, the newest first, each with a bar of its TTFT; false without any.
func drawProbes(a grid.Area, s *store.Snapshot, f *pane.Frame) bool {
	if !probeLine(a, s, f, 0) {
		return false
	}
	a.Elide(0, 1, a.W, pane.Dim, pane.FirstFitting(a.W, "measured by llmtop's own small requests; the server does not report these",
		"measured by llmtop's own requests"), f.Skin.Glyphs.Ellipsis)
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
		a.Text(0, y, pane.Dim, "#"+strconv.Itoa(int(r.ID)))
		a.Right(names-2, y, pane.Dim, metric.Duration(int64(s.Now-r.Enqueued))+" ago")
		switch {
		case r.TTFT.OK():
			pane.DrawStack(a.Sub(names, y, a.W-names-numbers, 1), f, 0, r, top)
			a.Right(a.W, y, pane.Data, metric.Seconds(r.TTFT.V))
		case r.State.Final():
			a.Elide(names, y, a.W-names, pane.Bad, r.Reason, f.Skin.Glyphs.Ellipsis)
		default:
			a.Text(names, y, pane.Dim, "in flight")
		}
	}
	return true
}
