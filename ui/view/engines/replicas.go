package engines

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
)

// replicaColumn is a column of the table.
type replicaColumn = pane.TableColumn[fleet.Field]

var replicaColumns = []replicaColumn{
	{Field: fleet.Name, W: 16, Rank: 0},
	{Field: fleet.State, W: 15, Rank: 1},
	{Field: fleet.Model, W: 22, Rank: 9},
	{Field: fleet.Running, W: 9, Rank: 2},
	{Field: fleet.Waiting, W: 9, Rank: 3},
	{Field: fleet.KV, W: 7, Rank: 5},
	{Field: fleet.Decode, W: 8, Rank: 2},
	{Field: fleet.TTFT, W: 10, Rank: 4},
	{Field: fleet.TTFT99, W: 10, Rank: 8},
	{Field: fleet.TPOT, W: 10, Rank: 6},
	{Field: fleet.ITL, W: 10, Rank: 6},
	{Field: fleet.CacheHits, W: 7, Rank: 7},
	{Field: fleet.Age, W: 8, Rank: 10},
}

// FindOutliers computes the outliers of the fleet.
func (t *Fleet) FindOutliers(all []*fleet.Replica) {
	t.Outliers = fleet.Outliers(all)
	t.outlierCells, t.outlierLines = make(map[*fleet.Replica][fleet.NumFields]bool), t.outlierLines[:0]
	t.noOutliers = differences(fleet.Differences(all, t.Outliers))
	for i := range t.Outliers {
		o := &t.Outliers[i]
		cells := t.outlierCells[o.Replica]
		cells[o.Field] = true
		t.outlierCells[o.Replica] = cells
		words := o.Words() + " " + timesMedian(o) + " (" + replicaNumber(o.Field, o.Value) + " vs " +
			replicaNumber(o.Field, fleet.Cell{Reading: event.DerivedValue(o.Median)}) + ")"
		if i > 0 && t.Outliers[i-1].Replica == o.Replica {
			t.outlierLines[len(t.outlierLines)-1] += "; " + words
			continue
		}
		t.outlierLines = append(t.outlierLines, o.Replica.Name+": "+words)
	}
}

// differences describes a fleet without outliers.
func differences(list []fleet.Difference, common bool) string {
	switch {
	case !common:
		return "nothing to compare yet: no two connected replicas of a model report the same number"
	case len(list) == 0:
		return "no outliers: all replicas are close to the median of their model"
	}
	words := make([]string, len(list))
	for i := range list {
		low, high := &list[i].Low, &list[i].High
		words[i] = low.Words() + " " + replicaNumber(low.Field, low.Value) + " (" + low.Replica.Name + ") to " +
			replicaNumber(high.Field, high.Value) + " (" + high.Replica.Name + ")"
	}
	return "no single outlier, but replicas differ: " + strings.Join(words, "; ")
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

// replicaColumnsFor returns the columns that fit into w cells, the sort column included, without latencies of tokens,
// cache hits or age if no replica has them. Name, state and model share the width left, names first: up to mostName of it
// before other columns.
func replicaColumnsFor(l *table.List[*fleet.Replica, fleet.Field], w int) []replicaColumn {
	longest := 0
	for _, r := range l.Rows {
		longest = max(longest, grid.Width(r.Name)+1)
	}
	columns := slices.Clone(replicaColumns)
	name := &columns[0]
	name.W = max(name.W, min(longest, w/mostName))
	out, left := pane.Fitting(columns, w, l.By, func(f fleet.Field) bool {
		known := slices.ContainsFunc(l.Rows, func(r *fleet.Replica) bool { return r.Cells[f].OK() })
		switch f {
		case fleet.TPOT, fleet.ITL:
			return known
		case fleet.CacheHits, fleet.Age:
			return known || len(l.Rows) == 0
		}
		return true
	})
	for i := range out {
		c := &out[i]
		if more := max(min(left, longest-c.W), min(left-stateSince, 24), 0); c.Field == fleet.Name {
			c.W += more
			left -= more
		}
		if c.Field == fleet.State && left >= stateSince {
			c.W += stateSince
			left -= stateSince
		}
		if c.Field == fleet.Model {
			c.W += min(left, 16)
		}
	}
	return out
}

// mostName is the part of the width, 1/mostName, that names may take from other columns.
const mostName = 5

// stateSince is the additional width of the state column with the time of its last change.
const stateSince = 9

// mostOutlierRows is the maximum number of rows for outliers.
const mostOutlierRows = 6

// drawReplicas draws the table: one row per replica, below them medians and sums, the outliers, and details of the selected
// replica.
func drawReplicas(a grid.Area, f *pane.Frame, t *Fleet) {
	t.Heads, t.Body = t.Heads[:0], grid.Rect{}
	l := &t.List
	in := f.BoxAs(a, "Engines", replicasTitle(f, t)...)
	if !t.filter.Typing {
		f.Foot(a, pane.Dim, "latencies over "+f.Window.String()+"  n/r not reported")
	}
	cols := replicaColumnsFor(l, in.W)
	outliers := min(len(t.outlierLines), mostOutlierRows, max(in.H-10, 1)) + 1
	if in.H < 12 {
		outliers = 0
	}
	detail := 0
	if in.H-outliers-4-len(l.Rows) >= 6 || in.H >= 30 {
		detail = 9
	}
	room := max(in.H-4-outliers-detail, 1)
	replicaHead(in, f, cols, t)
	t.Select(t.Selected, len(l.Rows))
	body := in.Sub(0, 1, in.W, room)
	from, to := t.Show(len(l.Rows), body)
	shown := l.Rows[from:to]
	for y, r := range shown {
		replicaRow(body.Sub(0, y, body.W, 1), f, cols, r, t.outlierCells[r])
		if t.First+y == t.Selected {
			pane.MarkRow(body, f, y)
		}
	}
	y := 1 + max(len(shown), 1)
	if len(shown) == 0 {
		body.Text(pane.MarkWidth, 0, pane.Dim, "no replica matches the filter; esc clears it")
	}
	in.Fill(0, y, in.W, grid.Fg(theme.Border), f.Skin.Glyphs.Horizontal)
	in.Right(in.W, y, pane.Dim, t.Range(len(l.Rows)))
	replicaSums(in, f, y+1, cols, l.Rows)
	if outliers > 0 {
		drawOutliers(in.Sub(0, y+3, in.W, outliers), f, t)
	}
	if at := y + 4 + outliers; detail > 0 && len(shown) > 0 && at+2 < in.H {
		r := l.Rows[t.Selected]
		engineDetail(in.Sub(0, at, in.W, in.H-at), f, Row{Name: r.Name, Snapshot: r.Snapshot})
	}
}

// replicasTitle returns the number of replicas and the sort order, and a shorter form.
func replicasTitle(f *pane.Frame, t *Fleet) []string {
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
func replicaHead(a grid.Area, f *pane.Frame, cols []replicaColumn, t *Fleet) {
	x := pane.MarkWidth
	for _, col := range cols {
		cell := a.Sub(x, 0, col.W-1, 1)
		t.Heads = append(t.Heads, pane.Head[fleet.Field]{Field: col.Field, At: cell.Rect})
		pane.DrawColumnHead(cell, f, col.Field.Title(), col.Field.Unit() == metric.Word, col.Field == t.List.By, t.List.Down)
		x += col.W
	}
}

// replicaRow draws one replica and highlights its outliers.
func replicaRow(a grid.Area, f *pane.Frame, cols []replicaColumn, r *fleet.Replica, outliers [fleet.NumFields]bool) {
	gl := f.Skin.Glyphs
	x := pane.MarkWidth
	why, _, down := chrome.LinkError(r.Snapshot, f)
	for _, col := range cols {
		cell := a.Sub(x, 0, col.W-1, 1)
		x += col.W
		switch {
		case col.Field == fleet.State:
			mark, st := replicaState(f, r)
			cell.Cell(0, 0, st, mark)
			words, since := r.State, chrome.WallClock(r.Snapshot, r.Snapshot.Engine.Remote.Since)
			if fits := cell.W-2 > len(words)+len(since); r.Broken && fits && r.Snapshot != chrome.NotKept {
				words += " " + since
			} else if down {
				why = "since " + since + ": " + why
			}
			cell.Clip(2, 0, cell.W-2, st, words)
			continue
		case down && col.Field.Unit() != metric.Word: // its last values are outdated: enter shows them
			a.Elide(cell.X-a.X, 0, a.W-(cell.X-a.X), pane.Dim, why, gl.Ellipsis)
			return
		case col.Field == fleet.Name:
			cell.Clip(0, 0, cell.W, pane.Plain, fitName(r.Name, cell.W, gl.Ellipsis))
			continue
		case col.Field.Unit() == metric.Word:
			cell.Elide(0, 0, cell.W, pane.Plain, r.Word(col.Field), gl.Ellipsis)
			continue
		}
		words, st := replicaNumber(col.Field, r.Cells[col.Field]), pane.Data
		switch {
		case r.Snapshot == chrome.NotKept:
			words, st = "-", pane.Dim
		case !r.Cells[col.Field].OK(), r.Broken:
			st = pane.Dim
		case outliers[col.Field]:
			st = pane.Watch.With(grid.Bold)
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
	return lastOf(name, w, ellipsis)
}

// lastOf returns the last w cells of a name, which tells apart those that share a beginning, after an ellipsis if it is
// longer.
func lastOf(name string, w int, ellipsis rune) string {
	if grid.Width(name) <= w {
		return name
	}
	for grid.Width(name) > w-1 && name != "" {
		_, n := utf8.DecodeRuneInString(name)
		name = name[n:]
	}
	return string(ellipsis) + name
}

func replicaState(f *pane.Frame, r *fleet.Replica) (rune, grid.Style) {
	if mark, _, st, broken := chrome.LinkState(r.Snapshot, f); broken {
		return mark, st
	}
	mark, _, st := chrome.EngineState(r.Snapshot, f)
	return mark, st
}

// stateOf returns the state of a replica, and whether it is disconnected or has no history.
func stateOf(f *pane.Frame, r Row) (word string, broken bool) {
	if _, _, _, broken := chrome.LinkState(r.Snapshot, f); broken {
		return linkWord(r.Snapshot), true
	}
	_, word, _ = chrome.EngineState(r.Snapshot, f)
	return word, r.Snapshot == chrome.NotKept
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
func replicaSums(a grid.Area, f *pane.Frame, y int, cols []replicaColumn, rows []*fleet.Replica) {
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
	x := pane.MarkWidth
	for _, col := range cols {
		cell := a.Sub(x, y, col.W-1, 2)
		x += col.W
		switch {
		case col.Field == fleet.Name:
			a.Text(cell.X-a.X, y, pane.Dim, "median"+suffix)
			a.Text(cell.X-a.X, y+1, pane.Dim, "sum"+suffix)
			continue
		case col.Field.Unit() == metric.Word:
			continue
		}
		cell.Right(cell.W, 0, pane.Loud, replicaNumber(col.Field, fleet.Median(rows, col.Field)))
		if col.Field == fleet.Running || col.Field == fleet.Waiting || col.Field == fleet.Decode {
			cell.Right(cell.W, 1, pane.Plain.With(grid.Bold), replicaNumber(col.Field, fleet.Cell{Reading: fleet.Sum(rows, col.Field)}))
		}
	}
}

// drawOutliers lists the replicas with outliers.
func drawOutliers(a grid.Area, f *pane.Frame, t *Fleet) {
	if len(t.outlierLines) == 0 {
		a.Elide(pane.MarkWidth, 0, a.W-pane.MarkWidth, pane.Dim, t.noOutliers, f.Skin.Glyphs.Ellipsis)
		return
	}
	more := len(t.outlierLines) - (a.H - 1)
	words := "outliers: " + strconv.Itoa(len(t.outlierLines))
	if len(t.outlierLines) > a.H-1 && more > 0 {
		words += ", the farthest first:"
	}
	a.Text(pane.MarkWidth, 0, pane.Watch.With(grid.Bold), words)
	for i, line := range t.outlierLines[:min(len(t.outlierLines), a.H-1)] {
		a.Cell(pane.MarkWidth, 1+i, pane.Watch, f.Skin.Glyphs.Watch)
		a.Elide(pane.MarkWidth+2, 1+i, a.W-pane.MarkWidth-2, pane.Plain, line, f.Skin.Glyphs.Ellipsis)
	}
}
