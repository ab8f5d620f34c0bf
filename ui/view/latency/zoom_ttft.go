package latency

import (
	"cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
)

// ttftColumn is a column of a table of requests.
type ttftColumn struct {
	title string
	w     int // 0: words, in the rest of the row if that is at least leastWords
	cell  func(*store.Request) (string, grid.Style)
}

const leastWords = 8

// ZoomTTFT draws bars of the newest requests, a table of all requests with their TTFT components, the selected one
// marked, and the model load.
func ZoomTTFT(a grid.Area, s *store.Snapshot, f *pane.Frame, selected int) {
	if !Measured(s) {
		zoomUnmeasured(f.Box(a, "time to first token by component"), s, f)
		return
	}
	in := f.Box(a, "requests, newest first; components add up to TTFT")
	drawTarget(a, s, f)
	bars := min(max(in.H/3, 4), len(s.Requests)+2)
	drawBars(in.Sub(0, 0, in.W, bars-2), f, s.Requests[:min(len(s.Requests), bars-2)], s.Engine.Caps)
	drawDominant(in, f, bars-2, withTTFTOrNewest(s.Requests))
	drawLegend(in, f, bars-1, s.Requests[:min(len(s.Requests), bars-2)])
	rest := in.Sub(0, bars+1, in.W, in.H-bars-1)
	lower := lowerRows(rest, s)
	rows := min(len(s.Requests)+1, rest.H-lower)
	first := max(selected-max(rows-2, 0), 0)
	drawRequestTable(rest.Sub(0, 0, rest.W, rows), ttftColumns(), s.Requests, first)
	if rows > 1 {
		pane.SelectRow(rest, f.Skin, 1+selected-first)
	}
	if lower > 0 {
		drawLower(rest.Sub(0, rows+1, rest.W, rest.H-rows-1), s, f)
	}
}

// lowerRows returns the rows reserved below the table for the load and the layers, with a blank one; 0 if the table
// needs them.
func lowerRows(rest grid.Area, s *store.Snapshot) int {
	want := len(s.Load)
	if r := pane.WithTTFT(s.Requests); r != nil {
		want = max(want, min(len(r.Layers), rest.H/2))
	}
	if want == 0 || rest.H < len(s.Load)+10 {
		return 0
	}
	return want + 2
}

// drawLower draws the model load and, beside it, the newest request's prompt by layer.
func drawLower(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	left := a
	if r := pane.WithTTFT(s.Requests); r != nil && len(r.Layers) > 0 && a.W >= 70 {
		left = a.Sub(0, 0, a.W/2-1, a.H)
		pane.DrawLayers(a.Sub(a.W/2+1, 0, a.W-a.W/2-1, a.H), f, r)
	}
	if len(s.Load) > 0 {
		loadTitle(left, s)
		drawLoad(left.Sub(0, 1, min(left.W, widestLoad), left.H-1), s, f)
	}
}

// withTTFTOrNewest returns the newest request with a first token, or the newest of all.
func withTTFTOrNewest(rs []*store.Request) *store.Request {
	if r := pane.WithTTFT(rs); r != nil {
		return r
	}
	return rs[0]
}

// ttftColumns returns the columns of the table by importance; those that do not fit are omitted at the right.
func ttftColumns() []ttftColumn {
	cols := []ttftColumn{
		{"TTFT", 9, readingCell(func(r *store.Request) event.Reading { return r.TTFT }, metric.Seconds, pane.Loud)},
		{"prompt", 8, countCell(table.Prompt, plainly)},
		{"gen", 8, countCell(table.Generated, plainly)},
	}
	for _, st := range append(event.Components(), event.StageNone) {
		cols = append(cols, ttftColumn{pane.ComponentLook(st).Name, 10, partCell(st)})
	}
	return append(cols,
		ttftColumn{"TPOT", 9, readingCell(func(r *store.Request) event.Reading { return r.TPOT }, metric.Seconds, pane.Plain)},
		ttftColumn{"E2EL", 9, readingCell(func(r *store.Request) event.Reading { return r.E2EL }, metric.Seconds, pane.Plain)},
		ttftColumn{"decode/s", 9, readingCell(func(r *store.Request) event.Reading { return r.DecodeRate }, metric.Rate, pane.Plain)},
		ttftColumn{"paced", 9, readingCell(func(r *store.Request) event.Reading { return r.Paced }, metric.Seconds, pane.Plain)},
	)
}

// countCell returns the cell function of a number of tokens.
func countCell(f table.Field, style func(*store.Request) grid.Style) func(*store.Request) (string, grid.Style) {
	return func(r *store.Request) (string, grid.Style) {
		v := f.Value(r, 0)
		if !v.OK() {
			return "-", pane.Dim
		}
		return pane.AtLeast(metric.Count(v.V), f == table.Generated && r.GeneratedAtLeast()), style(r)
	}
}

func plainly(*store.Request) grid.Style { return pane.Plain }

// readingCell returns the cell function of a reading.
func readingCell(get func(*store.Request) event.Reading, format func(float64) string, st grid.Style) func(*store.Request) (string, grid.Style) {
	return func(r *store.Request) (string, grid.Style) {
		v := get(r)
		if !v.OK() {
			return "-", pane.Dim
		}
		return format(v.V), st
	}
}

// partCell returns the cell function of one component.
func partCell(st event.Stage) func(*store.Request) (string, grid.Style) {
	return func(r *store.Request) (string, grid.Style) {
		for _, p := range r.Parts {
			if p.Stage != st {
				continue
			}
			if p.Stage == r.Dominant.Stage && r.Dominant.Share > 0 {
				return metric.Duration(int64(p.Dur)), pane.Data.With(grid.Bold)
			}
			return metric.Duration(int64(p.Dur)), pane.Plain
		}
		return "-", pane.Dim
	}
}

// drawRequestTable lists requests from the one at first on, with those columns that have values, as far as they fit.
func drawRequestTable(a grid.Area, cols []ttftColumn, requests []*store.Request, first int) {
	rs := requests[first:]
	shown := rs[:min(len(rs), max(a.H-1, 0))]
	x := 26
	if a.W < 60 {
		x = 8
	}
	a.Text(0, 0, pane.Heading, "request")
	for y, r := range shown {
		drawName(a, y+1, min(x, 16), r)
		if x > 16 {
			a.Clip(16, y+1, 9, pane.StateStyle(r.State), r.Status())
		}
	}
	for _, col := range cols {
		switch {
		case !anyCell(rs, col):
			continue
		case x+cmp.Or(col.w, leastWords) > a.W:
			return
		}
		cell := a.Sub(x, 0, cmp.Or(col.w, a.W-x), a.H)
		put := func(y int, st grid.Style, words string) {
			if col.w == 0 {
				cell.Elide(1, y, cell.W-1, st, words, '…')
				return
			}
			cell.Right(cell.W-1, y, st, words)
		}
		put(0, pane.Heading, col.title)
		for y, r := range shown {
			words, st := col.cell(r)
			put(y+1, st, words)
		}
		x += cell.W
	}
}

// anyCell reports whether a column has a value in any row.
func anyCell(rs []*store.Request, col ttftColumn) bool {
	for _, r := range rs {
		if words, _ := col.cell(r); words != "-" {
			return true
		}
	}
	return false
}
