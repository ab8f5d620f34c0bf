package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// experts is the view of the router as the user has arranged it, and the line in which an expert is looked for.
type experts struct {
	shown panes.ExpertView

	typing bool
	line   editor
	err    error            // what is wrong with what is typed
	before panes.ExpertView // to go back to
	found  []cell           // what was looked for, and
	next   int              // which of them comes next
}

// cell is one expert of one layer.
type cell struct{ layer, expert int }

func newExperts() experts {
	return experts{shown: panes.ExpertView{Budget: panes.BudgetParts / 4}}
}

// draw draws the view, with the line in the lower border while something is looked for.
func (x *experts) draw(area grid.Area, s *store.Snapshot, c *panes.Ctx) {
	panes.ExpertMap(area, &x.shown, s, c)
	if !x.typing {
		return
	}
	drawTyped(area.Sub(1, area.H-1, area.W-2, 1), &x.line, x.err, findSyntax+"   enter keep  esc undo", c.Skin)
}

// do does what a key of the view says.
func (a *app) doExperts(act action) {
	x, v, s := &a.experts, &a.experts.shown, a.snap
	switch act {
	case actExpertLeft, actExpertRight:
		v.Expert += map[action]int{actExpertLeft: -1, actExpertRight: 1}[act]
		x.choose(s, v.Layer, v.Expert)
	case actFind:
		x.typing, x.before, x.err = true, *v, nil
		x.line.show()
	case actFindNext:
		if !x.again(s) {
			a.say("nothing was looked for: press /")
		}
	case actBudgetLess:
		v.Budget = max(v.Budget-1, 0)
	case actBudgetMore:
		v.Budget = min(v.Budget+1, panes.BudgetParts)
	case actSplit:
		v.By = (v.By + 1) % panes.NumBys
		a.say("picks: " + v.By.String())
	case actSection:
		v.First = (v.First + 1) % panes.NumExpertTables
	case actSpan:
		v.Span = (v.Span + 1) % panes.NumSpans
		a.say("window: " + v.Span.String())
	}
}

// choose looks at an expert, or at the nearest one there is.
func (x *experts) choose(s *store.Snapshot, layer, expert int) {
	if e := s.Experts; e != nil && e.Layers > 0 && e.Experts > 0 {
		v := &x.shown
		v.Layer, v.Expert, v.Chosen = max(min(layer, e.Layers-1), 0), max(min(expert, e.Experts-1), 0), true
	}
}

// scroll goes some layers down.
func (x *experts) scroll(s *store.Snapshot, by int) { x.choose(s, x.shown.Layer+by, x.shown.Expert) }

// hover looks at the expert under the mouse, and reports whether that is another one.
func (x *experts) hover(s *store.Snapshot, px, py int) bool {
	v := &x.shown
	layer, expert, ok := v.At(px, py)
	if !ok || v.Chosen && layer == v.Layer && expert == v.Expert {
		return false
	}
	x.choose(s, layer, expert)
	return true
}

// onKey edits what is looked for, and goes there as it is typed.
func (x *experts) onKey(name, text string, s *store.Snapshot, c *panes.Ctx) {
	switch name {
	case "enter":
		if x.err == nil {
			x.typing = false
		}
		return
	case "esc", "ctrl+c":
		x.typing = false
		x.shown.Layer, x.shown.Expert, x.shown.Chosen = x.before.Layer, x.before.Expert, x.before.Chosen
		return
	}
	x.line.edit(name, text)
	x.find(s, c)
}

// paste puts pasted text into what is looked for.
func (x *experts) paste(text string, s *store.Snapshot, c *panes.Ctx) {
	x.line.insert(text)
	x.find(s, c)
}

// find goes to the first expert of those that are looked for.
func (x *experts) find(s *store.Snapshot, c *panes.Ctx) {
	x.err = nil
	if len(x.line.text) == 0 {
		return
	}
	h := x.shown.Hits(s, c)
	q, err := parseFind(string(x.line.text))
	if err == nil {
		x.found, err = q.cells(s.Experts, h)
	}
	if x.err = err; err == nil {
		x.next = 0
		x.again(s)
	}
}

// again goes to the next expert of those that were looked for, after the last to the first; false if there is none.
func (x *experts) again(s *store.Snapshot) bool {
	if len(x.found) == 0 {
		return false
	}
	at := x.found[x.next%len(x.found)]
	x.next = (x.next + 1) % len(x.found)
	x.choose(s, at.layer, at.expert)
	return true
}
