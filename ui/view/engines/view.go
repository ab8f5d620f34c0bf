// Package engines is the Engines view: the list of engines, the table of replicas, and the screen that offers engines.
package engines

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
)

// View is the list of engines, or the table of replicas where they form a fleet.
type View struct {
	view.Base
	pane.Rows       // of the list
	Engines   []Row // current data of each engine
	Fleet     Fleet

	open func(i int) // shows an engine in the other views
}

// New makes the view; open shows the engine of an index in the other views.
func New(open func(i int)) *View { return &View{open: open} }

// Name implements view.View.
func (v *View) Name() string { return "Engines" }

// Update takes the current data of the engines.
func (v *View) Update(f *pane.Frame, rows []Row) {
	v.Engines = rows
	v.Fleet.update(f, rows)
}

// SelectEngine selects an engine.
func (v *View) SelectEngine(i int, name string) {
	v.Selected = i
	v.Fleet.selectedName = name
	v.Fleet.arrange()
}

// Draw implements view.View.
func (v *View) Draw(a grid.Area, _ *store.Snapshot, f *pane.Frame) {
	if t := &v.Fleet; t.Enabled {
		drawReplicas(a, f, t)
		t.filter.Draw(a, t.List.Filter.Text(), table.ReplicaFilters.Example, f.Skin)
		return
	}
	drawList(a, f, v.Engines, &v.Rows)
}

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	t := &v.Fleet
	start := func() { t.filter.Start(t.List.Filter, t.List.Filter.Text()) }
	return append(
		[]view.Key{{Keys: []string{"enter"}, Show: "enter", Word: "show", Help: "show the selected engine", Do: v.openSelected}},
		view.TableKeys("three or more servers", table.ReplicaFilters.Example, start, t.sortColumn, func() { t.sort(t.List.By) }, view.Unless(func() bool { return t.Enabled }, "fewer than three servers to compare"))...,
	)
}

// openSelected shows the selected engine in the other views.
func (v *View) openSelected() {
	i := v.Selected
	if t := &v.Fleet; t.Enabled {
		i = -1
		if t.Selected < len(t.List.Rows) {
			i = slices.Index(t.all, t.List.Rows[t.Selected])
		}
	}
	if i >= 0 {
		v.open(i)
	}
}

// Scroll moves the selection by a number of rows.
func (v *View) Scroll(by int) {
	if v.Fleet.Enabled {
		v.Fleet.pin(v.Fleet.Selected + by)
		return
	}
	v.Select(v.Selected+by, len(v.Engines))
}

// Click selects the engine under the mouse, or sorts by the column head there; a second click shows the engine.
func (v *View) Click(x, y int) {
	again := false
	if t := &v.Fleet; t.Enabled {
		again = pane.ClickTable(&t.Rows, t.Heads, x, y, t.sort, t.pin)
	} else {
		again = v.ClickRow(x, y, func(row int) { v.Selected = row })
	}
	if again {
		v.openSelected()
	}
}

// Back removes the filter of the fleet.
func (v *View) Back() bool { return v.Fleet.unfilter() }

// Typing implements view.View.
func (v *View) Typing() bool { return v.Fleet.filter.Typing }

// Type edits the filter of the fleet.
func (v *View) Type(key, text string) {
	if t := &v.Fleet; t.filter.Edit(key, text, &t.List.Filter, table.ReplicaFilters.Parse) {
		t.arrange()
	}
}

// Paste inserts text into the filter of the fleet.
func (v *View) Paste(text string) {
	if t := &v.Fleet; t.filter.Insert(text, &t.List.Filter, table.ReplicaFilters.Parse) {
		t.arrange()
	}
}
