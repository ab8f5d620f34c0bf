package panes

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/table"
)

// ReplicaTable is the replica table as arranged by the user, with the screen positions of the last frame.
type ReplicaTable struct {
	Rows[fleet.Field]
	List     table.Replicas
	Outliers []fleet.Outlier

	outlierLines []string                                 // description of the outliers, one line per replica
	outlierCells map[*fleet.Replica][fleet.NumFields]bool // cells that are outliers
}

// replicaColumn is a column of the table.
type replicaColumn = tableColumn[fleet.Field]

var replicaColumns = []replicaColumn{
	{fleet.Name, 16, 0},
	{fleet.State, 15, 1},
	{fleet.Model, 22, 9},
	{fleet.Running, 9, 2},
	{fleet.Waiting, 9, 3},
	{fleet.KV, 7, 5},
	{fleet.Decode, 8, 2},
	{fleet.TTFT, 10, 4},
	{fleet.TTFT99, 10, 8},
	{fleet.TPOT, 10, 6},
	{fleet.CacheHits, 7, 7},
	{fleet.Age, 8, 10},
}

// FindOutliers computes the outliers of the fleet.
func (t *ReplicaTable) FindOutliers(all []*fleet.Replica) {
	t.Outliers = fleet.Outliers(all)
	t.outlierCells, t.outlierLines = make(map[*fleet.Replica][fleet.NumFields]bool), t.outlierLines[:0]
	for i := range t.Outliers {
		o := &t.Outliers[i]
		cells := t.outlierCells[o.Replica]
		cells[o.Field] = true
		t.outlierCells[o.Replica] = cells
		words := o.Field.Words() + " " + timesMedian(o) + " (" + replicaNumber(o.Field, o.Value) + " vs " +
			replicaNumber(o.Field, fleet.Cell{Reading: event.DerivedValue(o.Median)}) + ")"
		if i > 0 && t.Outliers[i-1].Replica == o.Replica {
			t.outlierLines[len(t.outlierLines)-1] += "; " + words
			continue
		}
		t.outlierLines = append(t.outlierLines, o.Replica.Name+": "+words)
	}
}

// timesMedian describes the ratio of an outlier to the median.
func timesMedian(o *fleet.Outlier) string {
	switch times := o.Times(); {
	case times == 0 && o.Median == 0:
		return "with a median of 0"
	case times < 0.1:
		return "below 0.1× the median"
	default:
		return strconv.FormatFloat(times, 'f', 1, 64) + "× the median"
	}
}

// replicaColumnsFor returns the columns that fit into w cells, the sort column included. State, name and model share
// the width left.
func replicaColumnsFor(by fleet.Field, w int) []replicaColumn {
	out, left := fitting(replicaColumns, w, by, func(fleet.Field) bool { return true })
	for i := range out {
		c := &out[i]
		if c.field == fleet.State && left >= stateSince {
			c.w += stateSince
			left -= stateSince
		}
		if more := min(max(left-stateSince, 0), 24); c.field == fleet.Name {
			c.w += more
			left -= more
		}
		if c.field == fleet.Model {
			c.w += min(left, 16)
		}
	}
	return out
}

// stateSince is the additional width of the state column with the time of its last change.
const stateSince = 9

// mostOutlierRows is the maximum number of rows for outliers.
const mostOutlierRows = 6

// Replicas draws the table: one row per replica, below them medians and sums, the outliers, and details of the selected
// replica.
func Replicas(a grid.Area, t *ReplicaTable, typing bool, c *Ctx) {
	t.Heads, t.Body = t.Heads[:0], grid.Rect{}
	l := &t.List
	in := c.frameAs(a, "Engines", c.replicasTitle(t)...)
	if !typing {
		c.foot(a, dim, "latencies over "+c.Window.String()+"  n/r not reported")
	}
	cols := replicaColumnsFor(l.By, in.W)
	outliers := min(len(t.outlierLines), mostOutlierRows, max(in.H-10, 1)) + 1
	if in.H < 12 {
		outliers = 0
	}
	detail := 0
	if in.H-outliers-4-len(l.Rows) >= 6 || in.H >= 30 {
		detail = 9
	}
	room := max(in.H-4-outliers-detail, 1)
	c.replicaHead(in, cols, t)
	t.Selected = max(min(t.Selected, len(l.Rows)-1), 0)
	body := in.Sub(0, 1, in.W, room)
	from, to := t.scroll(len(l.Rows), body)
	shown := l.Rows[from:to]
	for y, r := range shown {
		c.replicaRow(body.Sub(0, y, body.W, 1), cols, r, t.outlierCells[r])
		if t.First+y == t.Selected {
			c.mark(body, y)
		}
	}
	y := 1 + max(len(shown), 1)
	if len(shown) == 0 {
		body.Text(markWidth, 0, dim, "no replica matches the filter; esc clears it")
	}
	in.Fill(0, y, in.W, grid.Fg(theme.Border), c.Skin.Glyphs.Horizontal)
	if len(shown) < len(l.Rows) {
		in.Right(in.W, y, dim, " "+strconv.Itoa(t.First+1)+" to "+strconv.Itoa(t.First+len(shown))+" of "+strconv.Itoa(len(l.Rows))+" ")
	}
	c.replicaSums(in, y+1, cols, l.Rows)
	if outliers > 0 {
		c.drawOutliers(in.Sub(0, y+3, in.W, outliers), t)
	}
	if at := y + 4 + outliers; detail > 0 && len(shown) > 0 && at+2 < in.H {
		r := l.Rows[t.Selected]
		c.engineDetail(in.Sub(0, at, in.W, in.H-at), EngineRow{Name: r.Name, Snapshot: r.Snapshot})
	}
}

// replicasTitle returns the number of replicas and the sort order, and a shorter form.
func (c *Ctx) replicasTitle(t *ReplicaTable) []string {
	l := &t.List
	n := strconv.Itoa(l.All)
	if l.Filter.Text() != "" {
		n = strconv.Itoa(len(l.Rows)) + " of " + n
	}
	word := " replicas"
	if l.All == 1 {
		word = " replica"
	}
	return []string{n + word + ", by " + l.By.Title(), n}
}

// replicaHead writes the column heads, with an arrow at the sort column.
func (c *Ctx) replicaHead(a grid.Area, cols []replicaColumn, t *ReplicaTable) {
	x := markWidth
	for _, col := range cols {
		cell := a.Sub(x, 0, col.w-1, 1)
		t.Heads = append(t.Heads, Head[fleet.Field]{col.field, cell.Rect})
		c.columnHead(cell, col.field.Title(), col.field.Kind() == fleet.Word, col.field == t.List.By, t.List.Down)
		x += col.w
	}
}

// replicaRow draws one replica and highlights its outliers.
func (c *Ctx) replicaRow(a grid.Area, cols []replicaColumn, r *fleet.Replica, outliers [fleet.NumFields]bool) {
	gl := c.Skin.Glyphs
	x := markWidth
	why, _, down := c.linkError(r.Snapshot)
	for _, col := range cols {
		cell := a.Sub(x, 0, col.w-1, 1)
		x += col.w
		switch {
		case col.field == fleet.State:
			mark, st := c.replicaState(r)
			cell.Cell(0, 0, st, mark)
			words, since := r.State, wallClock(r.Snapshot, r.Snapshot.Engine.Remote.Since)
			if fits := cell.W-2 > len(words)+len(since); r.Broken && fits && r.Snapshot != NotKept {
				words += " " + since
			} else if down {
				why = "since " + since + ": " + why
			}
			cell.Clip(2, 0, cell.W-2, st, words)
			continue
		case down && col.field.Kind() != fleet.Word: // its last values are outdated: enter shows them
			a.Elide(cell.X-a.X, 0, a.W-(cell.X-a.X), dim, why, gl.Ellipsis)
			return
		case col.field == fleet.Name:
			cell.Clip(0, 0, cell.W, text, fitName(r.Name, cell.W, gl.Ellipsis))
			continue
		case col.field.Kind() == fleet.Word:
			cell.Elide(0, 0, cell.W, text, r.Word(col.field), gl.Ellipsis)
			continue
		}
		words, st := replicaNumber(col.field, r.Cells[col.field]), data
		switch {
		case r.Snapshot == NotKept:
			words, st = "-", dim
		case !r.Cells[col.field].OK(), r.Broken:
			st = dim
		case outliers[col.field]:
			st = watch.With(grid.Bold)
		}
		cell.Right(cell.W, 0, st, words)
	}
}

// fitName cuts a name to w cells. It keeps the end, in which replicas mostly differ.
func fitName(name string, w int, ellipsis rune) string {
	if grid.Width(name) <= w {
		return name
	}
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
	}
	cut := name
	for grid.Width(cut) > w-1 && cut != "" {
		_, n := utf8.DecodeRuneInString(cut)
		cut = cut[n:]
	}
	if grid.Width(name) <= w {
		return name
	}
	return string(ellipsis) + cut
}

func (c *Ctx) replicaState(r *fleet.Replica) (rune, grid.Style) {
	if mark, _, st, broken := c.link(r.Snapshot); broken {
		return mark, st
	}
	mark, _, st := c.engineState(r.Snapshot)
	return mark, st
}

// ReplicaState returns the state of a replica, and whether it is disconnected or has no history.
func (c *Ctx) ReplicaState(r EngineRow) (word string, broken bool) {
	if _, _, _, broken := c.link(r.Snapshot); broken {
		return linkWord(r.Snapshot), true
	}
	_, word, _ = c.engineState(r.Snapshot)
	return word, r.Snapshot == NotKept
}

// replicaNumber formats a number of a replica.
func replicaNumber(f fleet.Field, v fleet.Cell) string {
	if !v.OK() {
		words, _ := formatCell(v.Reading, metric.Count)
		return words
	}
	return f.Format(v)
}

// replicaSums writes the medians of the rows, and the sums of columns that can be added.
func (c *Ctx) replicaSums(a grid.Area, y int, cols []replicaColumn, rows []*fleet.Replica) {
	connected := 0
	for _, r := range rows {
		if !r.Broken {
			connected++
		}
	}
	suffix := ""
	if connected < len(rows) {
		suffix = " of " + strconv.Itoa(connected) + " connected"
	}
	x := markWidth
	for _, col := range cols {
		cell := a.Sub(x, y, col.w-1, 2)
		x += col.w
		switch {
		case col.field == fleet.Name:
			a.Text(cell.X-a.X, y, dim, "median"+suffix)
			a.Text(cell.X-a.X, y+1, dim, "sum"+suffix)
			continue
		case col.field.Kind() == fleet.Word:
			continue
		}
		cell.Right(cell.W, 0, loud, replicaNumber(col.field, fleet.Median(rows, col.field)))
		if col.field == fleet.Running || col.field == fleet.Waiting || col.field == fleet.Decode {
			cell.Right(cell.W, 1, text.With(grid.Bold), replicaNumber(col.field, fleet.Cell{Reading: fleet.Sum(rows, col.field)}))
		}
	}
}

// drawOutliers lists the replicas with outliers.
func (c *Ctx) drawOutliers(a grid.Area, t *ReplicaTable) {
	if len(t.outlierLines) == 0 {
		a.Text(markWidth, 0, dim, "no outliers: all replicas are close to the median of their model")
		return
	}
	more := len(t.outlierLines) - (a.H - 1)
	words := "outliers: " + strconv.Itoa(len(t.outlierLines))
	if len(t.outlierLines) > a.H-1 && more > 0 {
		words += ", the farthest first:"
	}
	a.Text(markWidth, 0, watch.With(grid.Bold), words)
	for i, line := range t.outlierLines[:min(len(t.outlierLines), a.H-1)] {
		a.Cell(markWidth, 1+i, watch, c.Skin.Glyphs.Watch)
		a.Elide(markWidth+2, 1+i, a.W-markWidth-2, text, line, c.Skin.Glyphs.Ellipsis)
	}
}
