package engines

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// engineColumn is a numeric column of the list.
type engineColumn struct {
	name   string
	width  int
	cell   func(*store.Snapshot, *pane.Frame) event.Reading
	format func(float64) string
	sums   bool                                      // summed over connected engines
	alarm  bool                                      // should be 0; summed over all engines, connected or not
	edge   func(*store.Snapshot, *pane.Frame) string // text for a value with only one known bound; nil: none
}

// raised reports whether the formatted number should be 0 and is known not to be.
func (c *engineColumn) raised(words string) bool { return c.alarm && words != "0" && words != "-" }

// engineColumns are the numeric columns, right-aligned.
var engineColumns = []engineColumn{
	{"decode/s", 8, func(s *store.Snapshot, _ *pane.Frame) event.Reading { return s.Throughput.Decode }, metric.Rate, true, false, nil},
	{"prefill/s", 10, func(s *store.Snapshot, _ *pane.Frame) event.Reading { return s.Throughput.Prefill }, metric.Rate, true, false, nil},
	{"run", 4, func(s *store.Snapshot, _ *pane.Frame) event.Reading { return s.Totals().Running }, metric.Count, true, false, nil},
	{"queue", 6, func(s *store.Snapshot, _ *pane.Frame) event.Reading { return s.Totals().Queued }, metric.Count, true, false, nil},
	{"TTFT p50", 9, func(s *store.Snapshot, f *pane.Frame) event.Reading { return ttft(s, f).Reading }, metric.Seconds, false, false, ttftEdge},
	{"drops", 6, func(s *store.Snapshot, _ *pane.Frame) event.Reading {
		if s.NeverReached() {
			return event.Absent(event.NotYet)
		}
		return event.DerivedValue(float64(s.Drops.Total()))
	}, metric.Count, true, true, nil},
}

// ttft returns the median TTFT.
func ttft(s *store.Snapshot, f *pane.Frame) fleet.Cell {
	v := fleet.Quantile(s, store.TTFT, f.Window, 0.5)
	if !v.OK() && len(s.Aggregates.Histograms) == 0 && !s.Engine.Caps.Has(event.CapTokens) {
		v.Reading = event.Absent(event.NotReported)
	}
	return v
}

// ttftEdge returns the median TTFT as "<100 ms" or ">10 s" where it lies in an outermost bucket, which has only one
// bound; "" otherwise.
func ttftEdge(s *store.Snapshot, f *pane.Frame) string {
	if v := ttft(s, f); v.Edge == metric.Below || v.Edge == metric.Above {
		return fleet.TTFT.Format(v)
	}
	return ""
}

// numbersWidth is the width of all engineColumns. stateColumn and modelColumn are the two columns before them. The column
// at lessNumbers is left out first.
const (
	lessNumbers  = 1
	numbersWidth = 43
	stateColumn  = 16
	modelColumn  = 25
	leastName    = 14
)

// drawList draws one row per engine, the sums, and details of the selected engine.
func drawList(a grid.Area, f *pane.Frame, rows []Row, list *pane.Rows) {
	gl := f.Skin.Glyphs
	a.Frame(grid.Fg(theme.BorderFocus), gl)
	a.Text(2, 0, grid.Fg(theme.Accent).With(grid.Bold), " Engines ")
	f.Foot(a, pane.Dim, "TTFT over "+f.Window.String()+"  n/r not reported")
	in := a.Inset(2, 1)
	if len(rows) == 0 {
		f.Absent(in, pane.Dim, "no engine yet", "engines appear here once discovered")
		list.First, list.Body = 0, grid.Rect{}
		return
	}
	cols := listColumnsFor(f, in.W, rows)
	engineHead(in, cols)
	detail := min(6, max(in.H-8, 0))
	if s := rows[min(list.Selected, len(rows)-1)].Snapshot; s.Aggregates.At > 0 || s.Counters != nil {
		detail = min(12, max(in.H-8, 0))
	}
	room := max(in.H-3-detail, 1) // rows for engines, without head, rule and sums
	from, to := list.Show(len(rows), in.Sub(0, 1, in.W, room))
	for i, r := range rows[from:to] {
		engineRow(in, f, cols, 1+i, r, from+i == list.Selected)
	}
	y := 1 + to - from
	if len(rows) > 1 {
		in.Fill(0, y, in.W, grid.Fg(theme.Border), gl.Horizontal)
		engineSums(in, f, cols, y+1, rows)
		in.Right(in.W, y, pane.Dim, list.Range(len(rows)))
		y += 2
	}
	if detail > 0 {
		engineDetail(in.Sub(0, y+1, in.W, in.H-y-1), f, rows[list.Selected])
	}
}

// listColumns are the columns of the list: the widths of the text columns, model 0 if it does not fit, and the numbers.
type listColumns struct {
	name, state, model int
	numbers            []engineColumn
}

// listColumnsFor returns the columns that fit into w cells. Long names take room from models and states. In little
// room the state is as wide as it needs to be, and a number is left out.
func listColumnsFor(f *pane.Frame, w int, rows []Row) listColumns {
	cols, left := listColumns{state: stateColumn, numbers: engineColumns}, w-2-numbersWidth
	names, states, models := 0, len("state"), len("model")
	for _, r := range rows {
		state, _ := stateOf(f, r)
		names, states, models = max(names, grid.Width(r.Name)), max(states, 2+grid.Width(state)), max(models, grid.Width(modelName(r.Snapshot)))
	}
	switch {
	case left >= leastName+stateColumn+modelColumn:
		spare := left - stateColumn - names - 1
		cols.model = max(min(modelColumn, max(spare, min(models+1, modelColumn))), min(models+1, spare)) // whole where there is room
		cols.state = max(min(stateColumn, left-names-1-cols.model), min(states+1, stateColumn))
	case left < leastName+stateColumn:
		cols.numbers = slices.Delete(slices.Clone(engineColumns), lessNumbers, lessNumbers+1)
		left = max(left+engineColumns[lessNumbers].width, 0)
		cols.state = min(states+1, stateColumn, left)
	}
	cols.name = left - cols.state - cols.model
	return cols
}

func engineHead(a grid.Area, cols listColumns) {
	name, state, model := cols.name, cols.state, cols.model
	a.Clip(2, 0, name, pane.Dim, "engine")
	a.Clip(2+name, 0, state, pane.Dim, "state")
	a.Clip(2+name+state, 0, model, pane.Dim, "model")
	x := 2 + name + state + model
	for _, col := range cols.numbers {
		x += col.width
		a.Right(x, 0, pane.Dim, col.name)
	}
}

func engineRow(a grid.Area, f *pane.Frame, cols listColumns, y int, r Row, selected bool) {
	s, gl := r.Snapshot, f.Skin.Glyphs
	name, state, model := cols.name, cols.state, cols.model
	mark, word, st := chrome.EngineState(s, f)
	m, _, alarm, broken := chrome.LinkState(s, f)
	if broken {
		mark, word, st = m, listWord(s), alarm
	}
	use := pane.Data
	if r.Shown {
		use = pane.Loud
	}
	a.Clip(2, y, name-1, use, fitName(r.Name, name-1, gl.Ellipsis))
	a.Clip(2+name, y, min(state, 1), st, string(mark))
	a.Clip(2+name+2, y, state-3, st, word)
	a.Elide(2+name+state, y, model-1, pane.Plain, modelName(s), gl.Ellipsis)
	x := 2 + name + state + model
	columns := cols.numbers
	if why, _, down := chrome.LinkError(s, f); down && s.Totals().Running.Origin == event.NotYet { // it has never reported anything
		a.Elide(x+1, y, a.W-x-1, pane.Dim, "since "+chrome.WallClock(s, s.Engine.Remote.Since)+": "+why, gl.Ellipsis)
		columns = nil
	}
	for _, col := range columns {
		x += col.width
		words, st := formatCell(col.cell(s, f), col.format)
		if col.edge != nil {
			if bound := col.edge(s, f); bound != "" {
				words, st = bound, pane.Data
			}
		}
		switch {
		case s == chrome.NotKept:
			words, st = "-", pane.Dim
		case col.raised(words):
			st = pane.Bad.With(grid.Bold)
		case broken: // last known value
			st = pane.Dim
		}
		a.Right(x, y, st, words)
	}
	if selected {
		pane.MarkRow(a, f, y)
	}
}

// formatCell formats a reading for a narrow column.
func formatCell(r event.Reading, format func(float64) string) (string, grid.Style) {
	switch {
	case r.OK():
		return format(r.V), pane.Data
	case r.Origin == event.NotReported:
		return "n/r", pane.Dim
	}
	return "-", pane.Dim
}

// modelName returns the model name with its quantisation.
func modelName(s *store.Snapshot) string {
	m := &s.Model
	words := sanitize.Line(m.Name)
	if m.Quantisation != "" {
		words += " " + sanitize.Line(m.Quantisation)
	}
	return words
}

// engineSums adds up the columns that can be summed, for connected engines only; drops are summed over all engines.
func engineSums(a grid.Area, f *pane.Frame, cols listColumns, y int, rows []Row) {
	name, state, model := cols.name, cols.state, cols.model
	connected := 0
	for _, r := range rows {
		if _, _, _, broken := chrome.LinkState(r.Snapshot, f); !broken {
			connected++
		}
	}
	words := "sum"
	if connected < len(rows) {
		words += " of " + strconv.Itoa(connected) + " connected"
	}
	a.Clip(2, y, name+state+model, pane.Dim, words)
	x := 2 + name + state + model
	for _, col := range cols.numbers {
		x += col.width
		if col.sums {
			words, st := formatCell(sumReadings(f, rows, col.cell, col.alarm), col.format)
			if col.raised(words) {
				st = pane.Bad
			}
			a.Right(x, y, st.With(grid.Bold), words)
		}
	}
}

// sumReadings adds up a reading over all engines, or over the connected ones.
func sumReadings(f *pane.Frame, rows []Row, reading func(*store.Snapshot, *pane.Frame) event.Reading, all bool) event.Reading {
	var out event.Reading
	connected := false
	for _, r := range rows {
		if _, _, _, broken := chrome.LinkState(r.Snapshot, f); all || !broken {
			out, connected = out.Plus(reading(r.Snapshot, f)), true
		}
	}
	if !connected {
		return event.Absent(event.NotYet)
	}
	return out
}
