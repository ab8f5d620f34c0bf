// Package experts is the router view, with the pane of the experts.
package experts

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view"
)

// View is the router view: the choices of the user and, after drawing, the screen positions of the maps.
type View struct {
	view.Base
	Span          Span
	By            Division
	Chosen        bool // the user chose Layer and Expert; otherwise the hottest cell is selected
	Layer, Expert int
	First         int // first table below the map
	Budget        int // share of all experts that fits on the faster device, in 1/BudgetParts
	Maps          []expertGrid

	program view.Program
	search  struct {
		typing    bool
		line      input.Editor
		err       error // error in the text
		before    cell  // the selection, restored by esc
		wasChosen bool
		matches   []cell
		next      int // index of the next result
	}
	mark  *store.Snapshot // snapshot of the newest mark; nil if none can be compared
	sums  expertSums
	cache cache
}

// New makes the view of a program.
func New(program view.Program) *View { return &View{program: program, Budget: BudgetParts / 4} }

// Name implements view.View.
func (v *View) Name() string { return "Experts" }

// Missing implements view.View.
func (v *View) Missing(s *store.Snapshot) (why, advice string) {
	if s.Experts != nil && s.Experts.Experts > 0 {
		return "", ""
	}
	return Missing(s), ""
}

// Draw draws the view, with the search line in the bottom border while the user types.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.cache.shown = false
	f.Windowed(a, s, func(s *store.Snapshot) { drawView(a, s, f, v) })
	if x := &v.search; x.typing {
		input.DrawSearch(a.Sub(1, a.H-1, a.W-2, 1), &x.line, x.err, findSyntax+"   enter keep  esc undo", f.Skin)
	}
}

// Working implements view.View.
func (v *View) Working() bool { return v.cache.shown && v.cache.running != nil }

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	return []view.Key{
		{Keys: []string{"left", "h"}, Show: "left", Name: "previous expert", Help: "select the previous expert; also with the mouse, or by layers with up and down", Do: func() { v.choose(v.Layer, v.Expert-1) }},
		{Keys: []string{"right", "l"}, Show: "left right", Word: "expert", Help: "select the next expert", Do: func() { v.choose(v.Layer, v.Expert+1) }},
		{Keys: []string{"/"}, Show: "/", Word: "find", Help: "find an expert: " + findSyntax + "; enter keeps the selection, esc restores it", Do: v.startSearch},
		{Keys: []string{"n"}, Show: "n", Name: "find next", Help: "select the next match, the most picked expert first", Do: v.findAgain},
		{Keys: []string{"v"}, Show: "v", Word: "by kind", Help: "split the map: by prompt kind, by group, in memory, or not at all", Do: v.nextDivision},
		{Keys: []string{"<"}, Show: "<", Name: "smaller budget", Help: "reduce the expert capacity of the faster device", Do: func() { v.Budget = max(v.Budget-1, 0) }},
		{Keys: []string{">"}, Show: "< >", Word: "budget", Help: "increase the expert capacity of the faster device: shows the share of routing it would serve, in one placement and as a cache", Do: func() { v.Budget = min(v.Budget+1, BudgetParts) }},
		{Keys: []string{"tab"}, Show: "tab", Word: "tables", Help: "switch the first table below the map: cache, pairs, prompt kinds, drift", Do: func() { v.First = (v.First + 1) % NumTables }},
		{Keys: []string{"w"}, Show: "w", Word: "window", Name: "window of the map", Help: "switch the window of the map: 1 min, session, last request, 10 s", Do: v.nextSpan},
	}
}

func (v *View) nextDivision() {
	v.By = (v.By + 1) % NumDivisions
	v.program.Notify("picks: " + v.By.String())
}

func (v *View) nextSpan() {
	v.Span = (v.Span + 1) % NumSpans
	v.program.Notify("window: " + v.Span.String())
}

// choose selects an expert, or the nearest valid one.
func (v *View) choose(layer, expert int) {
	if e := v.program.Snapshot().Experts; e != nil && e.Layers > 0 && e.Experts > 0 {
		v.Layer, v.Expert, v.Chosen = max(min(layer, e.Layers-1), 0), max(min(expert, e.Experts-1), 0), true
	}
}

// Scroll moves the selection down by a number of layers.
func (v *View) Scroll(by int) { v.choose(v.Layer+by, v.Expert) }

// Click selects the expert under the mouse.
func (v *View) Click(x, y int) { v.Hover(x, y) }

// Hover selects the expert under the mouse.
func (v *View) Hover(x, y int) bool {
	layer, expert, ok := v.At(x, y)
	if !ok || v.Chosen && layer == v.Layer && expert == v.Expert {
		return false
	}
	v.choose(layer, expert)
	return true
}

func (v *View) startSearch() {
	x := &v.search
	x.typing, x.before, x.wasChosen, x.err = true, cell{v.Layer, v.Expert}, v.Chosen, nil
	x.line.Show()
}

// Typing implements view.View.
func (v *View) Typing() bool { return v.search.typing }

// Type edits the search line and selects the first match while the user types.
func (v *View) Type(key, text string) {
	x := &v.search
	switch key {
	case "enter":
		x.typing = x.err != nil
	case "esc", "ctrl+c":
		x.typing = false
		v.Layer, v.Expert, v.Chosen = x.before.layer, x.before.expert, x.wasChosen
	default:
		if x.line.Edit(key, text) {
			v.find()
		}
	}
}

// Paste inserts text into the search line.
func (v *View) Paste(text string) {
	if v.search.line.Insert(text) {
		v.find()
	}
}

// find selects the first match.
func (v *View) find() {
	x, s := &v.search, v.program.Snapshot()
	x.err = nil
	text := x.line.Text()
	if text == "" {
		return
	}
	q, err := parseFind(text)
	if err == nil {
		x.matches, err = q.cells(s.Experts, v.Hits(s, v.program.Frame()))
	}
	if x.err = err; err == nil {
		x.next = 0
		v.findNext()
	}
}

func (v *View) findAgain() {
	if !v.findNext() {
		v.program.Notify("no search yet: press /")
	}
}

// findNext selects the next match, after the last one the first; false without matches.
func (v *View) findNext() bool {
	x := &v.search
	if len(x.matches) == 0 {
		return false
	}
	at := x.matches[x.next%len(x.matches)]
	x.next = (x.next + 1) % len(x.matches)
	v.choose(at.layer, at.expert)
	return true
}
