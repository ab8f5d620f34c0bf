package panes

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/table"
)

// RequestTable is the request table as arranged by the user, with the screen positions of the last frame.
type RequestTable struct {
	Rows[table.Field]
	List   *table.List
	Follow bool // select the newest request
}

// requestColumn is a column of the table.
type requestColumn = tableColumn[table.Field]

var requestTable = []requestColumn{
	{table.ID, 8, 0},
	{table.State, 12, 2},
	{table.Age, 8, 5},
	{table.Group, 14, 10},
	{table.Label, 14, 12},
	{table.Prompt, 7, 6},
	{table.Cached, 7, 11},
	{table.Generated, 7, 3},
	{table.Queue, 9, 9},
	{table.TTFT, 12, 1},
	{table.TPOT, 9, 4},
	{table.ITL, 9, 8},
	{table.E2EL, 9, 7},
	{table.Rate, 8, 6},
	{table.Stalls, 7, 14},
	{table.Reason, 12, 13},
}

const (
	markWidth = 2  // selection mark
	leastBar  = 14 // minimum width of a bar beside the numbers, with a gap of two
	mostBar   = 26
)

// columnsFor returns the columns that fit into w cells, without empty ones. The sort column is always included.
func columnsFor(l *table.List, w int) []requestColumn {
	fit, _ := fitting(requestTable, w, l.By, func(f table.Field) bool { return !isEmpty(l, f) })
	return fit
}

// columnAt returns the area of a column in h rows. Text keeps a gap of one to the number before it.
func columnAt(c requestColumn, a grid.Area, x, y, h int) grid.Area {
	if c.field.Kind() == table.Word && c.field != table.State {
		return a.Sub(x+1, y, c.w-2, h)
	}
	return a.Sub(x, y, c.w-1, h)
}

// isEmpty reports whether a text field is empty in all rows.
func isEmpty(l *table.List, f table.Field) bool {
	return f.Kind() == table.Word && !slices.ContainsFunc(l.Rows, func(r *store.Request) bool { return f.Text(r) != "" })
}

// Requests draws the table: one row per request, and sums and percentiles of the filtered rows below.
func Requests(a grid.Area, t *RequestTable, s *store.Snapshot, c *Ctx) {
	t.Heads, t.Body = t.Heads[:0], grid.Rect{}
	l := t.List
	title := requestsTitle(t)
	if l.All == 0 && (s.NeverReached() || s.NoPerRequest()) {
		title = nil
	}
	in := c.frameAs(a, "Requests", title...)
	if l.All == 0 {
		c.noRequest(in, s)
		return
	}
	cols := columnsFor(l, in.W)
	c.requestHead(in, cols, t)
	foot := requestFeet(in.H)
	if room := in.H - 1 - foot - len(l.Rows); room > leastGlance && t.Selected < len(l.Rows) {
		c.requestGlance(in.Sub(0, in.H-room+1, in.W, room-1), l.Rows[t.Selected], s)
		in = in.Sub(0, 0, in.W, in.H-room)
	}
	body := in.Sub(0, 1, in.W, in.H-1-foot)
	if len(l.Rows) == 0 {
		c.absent(body, dim, "no request matches the filter", "esc clears it")
	}
	from, to := t.scroll(len(l.Rows), body)
	shown := l.Rows[from:to]
	top := barTop(shown)
	for y, r := range shown {
		c.requestRow(body.Sub(0, y, body.W, 1), cols, r, top, s)
		if t.First+y == t.Selected {
			c.mark(body, y)
		}
	}
	if foot > 0 {
		c.requestSums(in.Sub(0, in.H-foot, in.W, foot), cols, t, len(shown), s.Latency.Targets)
	}
}

// noRequest draws why there are no requests.
func (c *Ctx) noRequest(a grid.Area, s *store.Snapshot) {
	switch {
	case c.waiting(a, s):
	case s.NoPerRequest():
		c.absent(a, dim, "per-request metrics: not reported by this engine", "measure them with llmtop proxy")
	default:
		c.absent(a, dim, "no request yet", c.Suggest)
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
func requestsTitle(t *RequestTable) []string {
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
func (c *Ctx) requestHead(a grid.Area, cols []requestColumn, t *RequestTable) {
	x := markWidth
	for _, col := range cols {
		cell := columnAt(col, a, x, 0, 1)
		t.Heads = append(t.Heads, Head[table.Field]{col.field, cell.Rect})
		c.columnHead(cell.Sub(0, 0, cell.W-markOf(col.field), 1), col.field.Title(), leftAligned(col.field), col.field == t.List.By, t.List.Down)
		x += col.w
	}
	bar, strip := pictureWidths(a.W - x)
	if bar > 0 {
		a.Text(x+1, 0, dim, "TTFT parts")
	}
	if strip > 0 {
		a.Text(x+1+bar, 0, dim, "token by token")
	}
}

// leftAligned reports whether a field is left-aligned: text, and the request number.
func leftAligned(f table.Field) bool { return f.Kind() == table.Word || f == table.ID }

// markOf returns the width that a column reserves for a mark at its right.
func markOf(f table.Field) int {
	if f == table.TTFT {
		return 2
	}
	return 0
}

// pictureWidths divides the width left by the columns between the TTFT bar and the strip of gaps; 0 means no room.
func pictureWidths(room int) (bar, strip int) {
	switch {
	case room >= 2*leastBar:
		bar = min(room/2, mostBar)
		return bar, room - bar
	case room >= leastBar:
		return room, 0
	}
	return 0, 0
}
