// Package system is the System view: the machine, its gauges over time, and the pane of the machine.
package system

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/request"
)

// Table is the state of the gauge table and of the charts beside it.
type Table struct {
	First int // first gauge shown
	sums  gaugeSums
	rows  []gaugeRow

	hidden int // accelerators below those shown

	charted map[string]bool // charts that have had a value: they stay
}

// Scroll scrolls by a number of rows; drawing limits the position to the rows that exist.
func (t *Table) Scroll(by int) { t.First = max(t.First+by, 0) }

// View is the System view.
type View struct {
	view.Base
	Table
	program view.Program
	request *request.View // with the selected token
}

// New makes the view of the machine at the time of the token selected in a request.
func New(program view.Program, selected *request.View) *View {
	return &View{program: program, request: selected}
}

// Scroll implements view.View.
func (v *View) Scroll(by int) { v.Table.Scroll(by) }

// Name implements view.View.
func (v *View) Name() string { return "System" }

// Draw draws the machine with the selected token of the request.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.request.Update(s)
	drawSystem(a, s, f, "System", &v.Table, v.request)
}

// Open shows the first gauges.
func (v *View) Open() { v.First = 0 }

// Reset forgets what was computed for another engine.
func (v *View) Reset() { v.Table = Table{} }

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	return append(v.request.TokenKeys(), view.Key{
		Keys: []string{"i"}, Show: "i", Word: "inspect",
		Help: "measure the engine's PSS and how much of the model's file is in the page cache; takes longer for larger models",
		Do:   v.inspect, Why: view.Unless(func() bool { return v.program.Actions().Inspect != nil }, "needs a live engine whose process is on this machine"),
	})
}

// inspect measures once what is too expensive for periodic samples.
func (v *View) inspect() {
	v.program.Actions().Inspect(v.program.Snapshot().Model.Path)
	v.program.Notify("PSS and page cache: shown with the next sample")
}
