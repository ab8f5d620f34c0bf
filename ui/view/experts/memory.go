package experts

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// residentMap returns the share of each expert in the page cache as a map, nil if it is not known.
func residentMap(s *store.Snapshot) *store.Hits {
	list := store.Residency(s)
	if list == nil {
		return nil
	}
	h := &store.Hits{Counts: make([]uint64, len(list)), Layers: make([]store.LayerHits, s.Experts.Layers), Max: 1}
	for i, share := range list {
		if share != event.UnknownShare {
			h.Counts[i], h.Layers[i/s.Experts.Experts].Total = uint64(share), 100
		}
	}
	return h
}

// noMaps returns why the maps of the division are not known.
func (v *View) noMaps(s *store.Snapshot, f *pane.Frame) string {
	switch {
	case v.By != InMemory:
		return noPicksReason(s, f)
	case s.Model.Path == "(built in)":
		return "experts in memory: the model is built in, it has no file"
	case f.Inspect:
		return "experts in memory: not measured yet"
	}
	return "experts in memory: not reported by this engine"
}

// memoryFacts sums up the experts in memory.
func memoryFacts(a grid.Area, h *store.Hits, s *store.Snapshot) {
	if a.H < 1 {
		return
	}
	l := a.Line(0, 0)
	hot := store.HotNotResident(s, h)
	style := pane.Loud
	if len(hot) > 0 {
		style = pane.Bad
	}
	l.Put(style, strconv.Itoa(len(hot))).Put(pane.Dim, " hot but not resident")
	for i, x := range hot[:min(len(hot), 3)] {
		l.Fit(grid.Piece{Style: pane.Dim, Words: [...]string{": ", ", ", ", "}[i]}, grid.Piece{Style: pane.Plain, Words: strconv.Itoa(x/s.Experts.Experts) + ":" + strconv.Itoa(x%s.Experts.Experts)})
	}
	if r := store.ResidentPicks(s, h); r.OK() {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "   of the picks in memory "}, grid.Piece{Style: pane.Loud, Words: metric.Percent(r.V)})
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: "   page cache " + metric.Duration(int64(time.Duration(s.Now-s.Host.ExpertsAt).Round(time.Second))) + " ago"})
}

// markMissing marks the experts that are hot but not resident, and with ? those of which it is not known.
func (m *expertGrid) markMissing(a grid.Area, s *store.Snapshot, f *pane.Frame, picks *store.Hits) {
	for i, share := range store.Residency(s) {
		if share == event.UnknownShare && !m.half {
			a.Text(i%m.e.Experts/m.perCol*m.cell, i/m.e.Experts/m.perRow*m.tall, pane.Dim, "?")
		}
	}
	for _, i := range store.HotNotResident(s, picks) {
		row, x := i/m.e.Experts/m.perRow, i%m.e.Experts/m.perCol*m.cell
		switch {
		case !m.half:
			a.Text(x, row*m.tall, pane.Bad, "!")
		case row%2 == 0:
			a.Halves(x, row/2, theme.Bad, m.heat(row+1, x/m.cell), f.Skin.Glyphs)
		default:
			a.Halves(x, row/2, m.heat(row-1, x/m.cell), theme.Bad, f.Skin.Glyphs)
		}
	}
}
