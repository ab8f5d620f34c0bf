// Package overview is the first view: the panes, each with a form for the full screen.
package overview

import (
	"cmp"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/latency"
)

// View is the overview: panes placed by a layout, one of them with the focus.
type View struct {
	view.Base
	Layout     Layout // of the user; the zero value: the default for the kind of engine
	Focus      ID
	Placements []Placement // of the last frame; empty in full screen

	zoom  Zoom
	had   [NumPanes]bool     // panes for which the engine has had data: they stay
	shown [NumPanes + 1]bool // panes on the overview if they fit; never NumPanes
	open  func(ID)           // shows a pane in full screen

	program     view.Program
	latency     *latency.View // selects and opens a stall
	picked      event.RequestID
	openRequest func(event.RequestID)
}

// New makes the view of a program with the user's layout; open shows a pane in full screen, openRequest the first token
// of a request. The view of latencies has the selected stall.
func New(program view.Program, layout Layout, open func(ID), latency *latency.View, openRequest func(event.RequestID)) *View {
	return &View{program: program, Layout: layout, open: open, latency: latency, openRequest: openRequest}
}

// Name implements view.View.
func (v *View) Name() string { return "Overview" }

// Draw implements view.View.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	body, low := a.Rect, grid.Rect{}
	if len(v.Layout.rows) == 0 {
		body, low = splitBreakdown(a.Rect, s)
	}
	v.Placements = append(v.Placements[:0], v.arrange(body, s)...)
	if low.H > 0 {
		v.Placements = append(v.Placements, Placement{Breakdown, low})
	}
	v.keepFocus()
	for _, focused := range []bool{false, true} { // with ASCII, boxes drawn before lose the borders beside it
		for _, p := range v.Placements {
			if focused == (p.ID == v.Focus) {
				Draw(a.Sub(p.At.X-a.X, p.At.Y-a.Y, p.At.W, p.At.H), s, f, p.ID, focused, nil)
			}
		}
	}
}

// show finds the panes for which the engine has, or will have, data.
func (v *View) show(s *store.Snapshot) {
	for id := range NumPanes {
		has, comes := reports(id, s)
		v.had[id] = v.had[id] || has
		v.shown[id] = v.had[id] || comes
	}
}

// keepFocus moves the focus to a visible pane.
func (v *View) keepFocus() {
	if len(v.Placements) > 0 && !slices.ContainsFunc(v.Placements, func(p Placement) bool { return p.ID == v.Focus }) {
		v.Focus = v.Placements[0].ID
	}
}

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	return append(v.focusKeys(), view.Key{
		Keys: []string{"enter", "z"}, Show: "enter", Word: "zoom", Help: "show the focused pane in full screen; or click its title",
		Do: func() { v.open(v.Focus) },
	})
}

func (v *View) focusKeys() []view.Key {
	return []view.Key{
		{Keys: []string{"tab", "right"}, Show: "tab", Word: "focus", Help: "focus the next pane; or click it", Do: func() { v.moveFocus(1) }},
		{Keys: []string{"shift+tab", "left"}, Show: "shift+tab", Name: "previous pane", Help: "focus the previous pane", Do: func() { v.moveFocus(-1) }},
	}
}

// moveFocus focuses the next or previous pane: of those on the overview, or in full screen of all that the engine has data for.
func (v *View) moveFocus(by int) {
	order := make([]ID, 0, NumPanes)
	for _, p := range v.Placements {
		order = append(order, p.ID)
	}
	for id := range NumPanes {
		if len(v.Placements) == 0 && v.shown[id] {
			order = append(order, id)
		}
	}
	if len(v.Layout.rows) == 0 {
		slices.Sort(order)
	}
	if len(order) == 0 { // nothing was drawn yet
		return
	}
	i := max(slices.Index(order, v.Focus), 0)
	v.Focus = order[(i+by+len(order))%len(order)]
	v.zoom.scroll, v.zoom.machine.First = 0, 0
}

// Reset forgets what was computed for another engine.
func (v *View) Reset() { v.zoom, v.had, v.picked = Zoom{}, [NumPanes]bool{}, 0 }

// Click focuses the pane under the mouse. On its title, or if it has the focus, the pane opens in full screen.
func (v *View) Click(x, y int) {
	for _, p := range v.Placements {
		if !p.At.Has(x, y) {
			continue
		}
		again := v.Focus == p.ID || y == p.At.Y
		v.Focus = p.ID
		if again {
			v.open(p.ID)
		}
		return
	}
}

// Zoomed is the focused pane of the overview in full screen.
type Zoomed struct{ *View }

// Name implements view.View.
func (v Zoomed) Name() string { return "Pane" }

// Open shows the first rows.
func (v Zoomed) Open() { v.zoom.scroll, v.zoom.machine.First = 0, 0 }

// Draw implements view.View.
func (v Zoomed) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.Placements = v.Placements[:0]
	if v.show(s); !v.shown[v.Focus] {
		v.Focus = Insights
	}
	shown := cmp.Or(s.LastActive, s)
	v.zoom.stall, v.zoom.request = v.latency.Selected(shown), v.request(shown)
	Draw(a, s, f, v.Focus, true, &v.zoom)
}

// Keys implements view.View.
func (v Zoomed) Keys() []view.Key {
	return append(v.focusKeys(), view.Key{
		Keys: []string{"enter"}, Show: "enter", Word: "open", Name: "open row of the pane", Help: "in full screen: open the selected stall of ITL, or request of TTFT; select with up and down",
		Do: v.openSelected, Why: view.Unless(v.lists, "nothing to open in this pane"),
	})
}

// lists reports whether the pane lists what can be opened.
func (v Zoomed) lists() bool {
	s := v.program.Snapshot()
	return v.Focus == ITL && latency.ListsStalls(s) || v.Focus == TTFT && latency.Measured(s)
}

// openSelected shows the selected stall or request.
func (v Zoomed) openSelected() {
	if v.Focus == ITL {
		v.latency.OpenStall()
		return
	}
	s := v.program.Snapshot()
	v.openRequest(s.Requests[v.request(s)].ID)
}

// request returns the position of the selected request; the newest if it is no longer listed.
func (v *View) request(s *store.Snapshot) int {
	return max(slices.IndexFunc(s.Requests, func(r *store.Request) bool { return r.ID == v.picked }), 0)
}

// Scroll scrolls by a number of rows; drawing limits the position to the rows that exist. Text is scrolled from its
// end, so its rows count from there.
func (v Zoomed) Scroll(by int) {
	switch v.Focus {
	case Machine:
		v.zoom.machine.Scroll(by)
		return
	case ITL:
		v.latency.Scroll(by)
		return
	case TTFT:
		if s := v.program.Snapshot(); len(s.Requests) > 0 {
			v.picked = s.Requests[max(min(v.request(s)+by, len(s.Requests)-1), 0)].ID
		}
		return
	case Text:
		by = -by
	}
	v.zoom.scroll = max(v.zoom.scroll+by, 0)
}
