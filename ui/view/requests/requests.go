package requests

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/request"
)

// requestColumn is a column of the table.
type requestColumn = pane.TableColumn[table.Field]

var requestTable = []requestColumn{
	{Field: table.ID, W: 8, Rank: 0},
	{Field: table.State, W: 12, Rank: 2},
	{Field: table.Age, W: 8, Rank: 5},
	{Field: table.Group, W: 14, Rank: 10},
	{Field: table.Label, W: 14, Rank: 12},
	{Field: table.Prompt, W: 7, Rank: 6},
	{Field: table.Cached, W: 7, Rank: 11},
	{Field: table.Generated, W: 7, Rank: 3},
	{Field: table.Queue, W: 9, Rank: 9},
	{Field: table.TTFT, W: 12, Rank: 1},
	{Field: table.Answer, W: 12, Rank: 9},
	{Field: table.TPOT, W: 9, Rank: 4},
	{Field: table.ITL, W: 9, Rank: 8},
	{Field: table.E2EL, W: 9, Rank: 7},
	{Field: table.Rate, W: 8, Rank: 6},
	{Field: table.Stalls, W: 7, Rank: 14},
	{Field: table.Reason, W: 14, Rank: 13},
	{Field: table.Model, W: 16, Rank: 5},
	{Field: table.Text, W: 26, Rank: 13},
}

const (
	leastBar = 14 // minimum width of a bar beside the numbers, with a gap of two
	mostBar  = 26
)

// columnsFor returns the columns that fit into w cells, without those that say nothing. The sort column is always included.
// What they leave of all cells is divided between the TTFT bar and the strip of gaps; 0 means no room, or nothing to show.
func columnsFor(l *table.Requests, w, all int) (fit []requestColumn, bar, strip int) {
	fit, _ = pane.Fitting(requestTable, w, l.By, func(f table.Field) bool { return varies(l, f) })
	room := all - pane.MarkWidth
	for _, c := range fit {
		room -= c.W
	}
	if room >= leastBar && varies(l, table.TTFT) {
		bar = room
		if room >= 2*leastBar {
			bar = min(room/2, mostBar)
		}
	}
	if room-bar >= leastBar && varies(l, table.ITL) {
		strip = room - bar
	}
	return fit, bar, strip
}

// columnAt returns the area of a column in h rows. Text keeps a gap of one to the number before it.
func columnAt(c requestColumn, a grid.Area, x, y, h int) grid.Area {
	if c.Field.Unit() == metric.Word && c.Field != table.State {
		return a.Sub(x+1, y, c.W-2, h)
	}
	return a.Sub(x, y, c.W-1, h)
}

// varies reports whether a field is worth a column: text that is not empty in all rows, several models, and numbers that
// a request has or, before the first one has ended, may get.
func varies(l *table.Requests, f table.Field) bool {
	if f.Unit() != metric.Word {
		has := func(r *store.Request) bool { return f.Value(r, r.Enqueued).OK() }
		waits := func(r *store.Request) bool { return f.Value(r, r.Enqueued).Origin == event.NotYet }
		ended := func(r *store.Request) bool { return r.State.Final() && f != table.TTFT } // a long wait for TTFT is shown
		return slices.ContainsFunc(l.Rows, has) || len(l.Rows) == 0 && f != table.Answer ||
			slices.ContainsFunc(l.Rows, waits) && !slices.ContainsFunc(l.Rows, ended)
	}
	same := ""
	if f == table.Model && len(l.Rows) > 0 {
		same = l.Rows[0].Model
	}
	return slices.ContainsFunc(l.Rows, func(r *store.Request) bool { return f.Text(r) != same })
}

// DrawPane draws the newest requests, one row each, for the overview.
func DrawPane(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in := f.Box(a, "newest first")
	if len(s.Requests) == 0 {
		request.NoRequest(in, s, f)
		return
	}
	t := &View{List: &table.Requests{List: table.List[*store.Request, table.Field]{By: table.Age}}}
	t.List.Rows = s.Requests[:min(len(s.Requests), max(in.H-1, 0))]
	numbers := in.W
	if numbers >= 80 {
		numbers -= 2 * leastBar // for the pictures
	}
	cols, bar, strip := columnsFor(t.List, numbers, in.W)
	requestHead(in, f, cols, bar, strip, t)
	top := barTop(t.List.Rows)
	for y, r := range t.List.Rows {
		requestRow(in.Sub(0, y+1, in.W, 1), s, f, cols, bar, strip, r, top)
	}
}

// drawTable draws the table: one row per request, and sums and percentiles of the filtered rows below.
func drawTable(a grid.Area, s *store.Snapshot, f *pane.Frame, t *View) {
	t.Heads, t.Body = t.Heads[:0], grid.Rect{}
	l := t.List
	title := requestsTitle(t)
	if why, _ := request.Missing(s); l.All == 0 && (s.NeverReached() || why != "") {
		title = nil
	}
	in := f.BoxAs(a, "Requests", title...)
	if l.All == 0 {
		request.NoRequest(in, s, f)
		return
	}
	cols, bar, strip := columnsFor(l, in.W, in.W)
	requestHead(in, f, cols, bar, strip, t)
	foot := requestFeet(in.H)
	if room := in.H - 1 - foot - len(l.Rows); room > request.LeastGlance && t.Selected < len(l.Rows) {
		request.DrawGlance(in.Sub(0, in.H-room+1, in.W, room-1), s, f, l.Rows[t.Selected])
		in = in.Sub(0, 0, in.W, in.H-room)
	}
	body := in.Sub(0, 1, in.W, in.H-1-foot)
	if len(l.Rows) == 0 {
		f.Absent(body, pane.Dim, "no request matches the filter", "esc clears it")
	}
	from, to := t.Show(len(l.Rows), body)
	shown := l.Rows[from:to]
	top := barTop(shown)
	for y, r := range shown {
		requestRow(body.Sub(0, y, body.W, 1), s, f, cols, bar, strip, r, top)
		if t.First+y == t.Selected {
			pane.MarkRow(body, f, y)
		}
	}
	if foot > 0 {
		requestSums(in.Sub(0, in.H-foot, in.W, foot), f, cols, t, s.Latency.Targets)
	}
}

// requestFeet returns the rows for the sums, 0 on a small screen.
func requestFeet(h int) int {
	switch {
	case h >= 24:
		return 4
	case h >= 10:
		return 3
	}
	return 0
}

// requestsTitle returns the number of requests, the sort order and the selection mode, then shorter forms.
func requestsTitle(t *View) []string {
	l := t.List
	n := metric.Count(float64(l.All))
	if l.Filter.Text() != "" {
		n = metric.Count(float64(len(l.Rows))) + " of " + n
	}
	order := "by " + l.By.Title()
	if l.By == table.Age {
		order = "newest first"
		if l.Down {
			order = "oldest first"
		}
	}
	pinned := ", following the newest"
	if !t.Follow && t.Selected < len(l.Rows) {
		pinned = ", pinned to #" + strconv.Itoa(int(l.Rows[t.Selected].ID))
	}
	return []string{n + ", " + order + pinned, n + ", " + order, n}
}

// requestHead writes the column heads, with an arrow at the sort column.
func requestHead(a grid.Area, f *pane.Frame, cols []requestColumn, bar, strip int, t *View) {
	x := pane.MarkWidth
	for _, col := range cols {
		cell := columnAt(col, a, x, 0, 1)
		t.Heads = append(t.Heads, pane.Head[table.Field]{Field: col.Field, At: cell.Rect})
		pane.DrawColumnHead(cell.Sub(0, 0, cell.W-markOf(col.Field), 1), f, col.Field.Title(), leftAligned(col.Field), col.Field == t.List.By, t.List.Down)
		x += col.W
	}
	if bar > 0 {
		a.Text(x+1, 0, pane.Dim, "TTFT parts")
	}
	if strip > 0 {
		a.Text(x+1+bar, 0, pane.Dim, "token by token")
	}
}

// leftAligned reports whether a field is left-aligned: text, and the request number.
func leftAligned(f table.Field) bool { return f.Unit() == metric.Word || f == table.ID }

// markOf returns the width that a column reserves for a mark at its right.
func markOf(f table.Field) int {
	if f == table.TTFT {
		return 2
	}
	return 0
}
