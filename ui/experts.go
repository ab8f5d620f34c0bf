package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/experts"
)

// experts is the state of the router view: how the user arranged it, and the search line.
type expertsState struct {
	shown experts.View

	typing  bool
	line    editor
	err     error        // error in the search text
	saved   experts.View // restored by esc
	matches []cell       // search results
	next    int          // index of the next result
}

// cell is one expert in one layer.
type cell struct{ layer, expert int }

func newExperts() expertsState {
	return expertsState{shown: experts.View{Budget: experts.BudgetParts / 4}}
}

// draw draws the view, with the search line in the bottom border while the user types.
func (x *expertsState) draw(area grid.Area, s *store.Snapshot, c *pane.Frame) {
	experts.Draw(area, &x.shown, s, c)
	if !x.typing {
		return
	}
	drawInput(area.Sub(1, area.H-1, area.W-2, 1), &x.line, x.err, findSyntax+"   enter keep  esc undo", c.Skin)
}

// doExperts performs a key action of the router view.
func (a *app) doExperts(act action) {
	x, v, s := &a.experts, &a.experts.shown, a.snap
	switch act {
	case actExpertLeft, actExpertRight:
		v.Expert += map[action]int{actExpertLeft: -1, actExpertRight: 1}[act]
		x.selectExpert(s, v.Layer, v.Expert)
	case actFind:
		x.typing, x.saved, x.err = true, *v, nil
		x.line.show()
	case actFindNext:
		if !x.findNext(s) {
			a.notify("no search yet: press /")
		}
	case actBudgetLess:
		v.Budget = max(v.Budget-1, 0)
	case actBudgetMore:
		v.Budget = min(v.Budget+1, experts.BudgetParts)
	case actSplit:
		v.By = (v.By + 1) % experts.NumDivisions
		a.notify("picks: " + v.By.String())
	case actSection:
		v.First = (v.First + 1) % experts.NumTables
	case actSpan:
		v.Span = (v.Span + 1) % experts.NumSpans
		a.notify("window: " + v.Span.String())
	}
}

// selectExpert selects an expert, or the nearest valid one.
func (x *expertsState) selectExpert(s *store.Snapshot, layer, expert int) {
	if e := s.Experts; e != nil && e.Layers > 0 && e.Experts > 0 {
		v := &x.shown
		v.Layer, v.Expert, v.Chosen = max(min(layer, e.Layers-1), 0), max(min(expert, e.Experts-1), 0), true
	}
}

// scroll moves the selection down by a number of layers.
func (x *expertsState) scroll(s *store.Snapshot, by int) {
	x.selectExpert(s, x.shown.Layer+by, x.shown.Expert)
}

// hover selects the expert under the mouse and reports whether the selection changed.
func (x *expertsState) hover(s *store.Snapshot, px, py int) bool {
	v := &x.shown
	layer, expert, ok := v.At(px, py)
	if !ok || v.Chosen && layer == v.Layer && expert == v.Expert {
		return false
	}
	x.selectExpert(s, layer, expert)
	return true
}

// onKey edits the search line and selects the first match while the user types.
func (x *expertsState) onKey(name, text string, s *store.Snapshot, c *pane.Frame) {
	switch name {
	case "enter":
		if x.err == nil {
			x.typing = false
		}
		return
	case "esc", "ctrl+c":
		x.typing = false
		x.shown.Layer, x.shown.Expert, x.shown.Chosen = x.saved.Layer, x.saved.Expert, x.saved.Chosen
		return
	}
	x.line.edit(name, text)
	x.find(s, c)
}

// paste inserts pasted text into the search line.
func (x *expertsState) paste(text string, s *store.Snapshot, c *pane.Frame) {
	x.line.insert(text)
	x.find(s, c)
}

// find selects the first match.
func (x *expertsState) find(s *store.Snapshot, c *pane.Frame) {
	x.err = nil
	if len(x.line.text) == 0 {
		return
	}
	h := x.shown.Hits(s, c)
	q, err := parseFind(string(x.line.text))
	if err == nil {
		x.matches, err = q.cells(s.Experts, h)
	}
	if x.err = err; err == nil {
		x.next = 0
		x.findNext(s)
	}
}

// findNext selects the next match, after the last one the first; false without matches.
func (x *expertsState) findNext(s *store.Snapshot) bool {
	if len(x.matches) == 0 {
		return false
	}
	at := x.matches[x.next%len(x.matches)]
	x.next = (x.next + 1) % len(x.matches)
	x.selectExpert(s, at.layer, at.expert)
	return true
}
