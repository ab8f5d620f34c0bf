package ui

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/engines"
)

// minFleet is the minimum number of engines to compare as replicas, if they report aggregate metrics.
const minFleet = 3

// replicas is the state of the list of engines shown as a table of replicas.
type replicas struct {
	enabled      bool // the engines form a fleet
	shown        engines.ReplicaTable
	all          []*fleet.Replica
	measured     []*store.Snapshot // snapshots of the last measurement
	window       metric.Window
	selectedName string // name of the selected replica; "": the first

	filtering[table.ReplicaFilter]
}

// isFleet reports whether engines are compared as replicas.
func isFleet(rows []engines.Row) bool {
	return len(rows) >= minFleet && slices.ContainsFunc(rows, func(r engines.Row) bool {
		return r.Snapshot.Aggregates != nil || r.Snapshot.Engine.Caps.Has(event.CapAggregates)
	})
}

// update measures the replicas with new data.
func (r *replicas) update(rows []engines.Row, c *pane.Frame) {
	if r.enabled = isFleet(rows); !r.enabled {
		r.typing = false
		return
	}
	changed := len(r.all) != len(rows) || r.window != c.Window
	r.window = c.Window
	for len(r.all) < len(rows) {
		r.all, r.measured = append(r.all, &fleet.Replica{}), append(r.measured, nil)
	}
	r.all, r.measured = r.all[:len(rows)], r.measured[:len(rows)]
	for i, row := range rows {
		one := r.all[i]
		state, broken := engines.ReplicaState(c, row)
		if !changed && r.measured[i] == row.Snapshot && one.Name == row.Name && one.State == state {
			continue
		}
		changed, r.measured[i] = true, row.Snapshot
		one.Name, one.State, one.Broken, one.Model = row.Name, state, broken, sanitize.Line(row.Snapshot.Model.Name)
		one.Measure(row.Snapshot, c.Window)
	}
	if changed {
		r.shown.FindOutliers(r.all)
		r.arrange()
	}
}

// arrange filters and sorts the rows and keeps the selected replica.
func (r *replicas) arrange() {
	t := &r.shown
	t.List.Update(r.all)
	if i := slices.IndexFunc(t.List.Rows, func(one *fleet.Replica) bool { return one.Name == r.selectedName }); i >= 0 && r.selectedName != "" {
		t.Selected = i
	}
	t.Selected = max(min(t.Selected, len(t.List.Rows)-1), 0)
}

// pin selects the replica of a row, or of the nearest valid row.
func (r *replicas) pin(row int) {
	t := &r.shown
	if n := len(t.List.Rows); n > 0 {
		t.Selected = max(min(row, n-1), 0)
		r.selectedName = t.List.Rows[t.Selected].Name
	}
}

// selectedIndex returns the index of the selected engine, -1 without one.
func (r *replicas) selectedIndex() int {
	t := &r.shown
	if t.Selected >= len(t.List.Rows) {
		return -1
	}
	return slices.Index(r.all, t.List.Rows[t.Selected])
}

// do performs a key action of the table.
func (r *replicas) do(act action) {
	l := &r.shown.List
	switch act {
	case actFilter:
		r.start(l.Filter, l.Filter.Text())
	case actColumnLeft:
		r.sort((l.By + fleet.NumFields - 1) % fleet.NumFields)
	case actColumnRight:
		r.sort((l.By + 1) % fleet.NumFields)
	case actReverse:
		r.sort(l.By)
	}
}

// sort sorts by a field and selects the first row.
func (r *replicas) sort(by fleet.Field) {
	r.shown.List.SortBy(by)
	r.selectedName, r.shown.Selected, r.shown.First = "", 0, 0
	r.arrange()
}

// onClick sorts by the column header under the mouse, or selects the row there; it reports whether that row was
// selected already.
func (r *replicas) onClick(x, y int) (again bool) { return click(&r.shown.Rows, x, y, r.sort, r.pin) }

// unfilter removes the filter and reports whether there was one.
func (r *replicas) unfilter() bool {
	filtered := r.enabled && r.shown.List.Filter.Text() != ""
	r.shown.List.Filter = table.ReplicaFilter{}
	r.arrange()
	return filtered
}

// onKey edits the filter.
func (r *replicas) onKey(name, text string) {
	if r.edit(name, text, &r.shown.List.Filter, table.ParseReplicas) {
		r.arrange()
	}
}

// paste inserts pasted text into the filter.
func (r *replicas) paste(text string) {
	if r.insert(text, &r.shown.List.Filter, table.ParseReplicas) {
		r.arrange()
	}
}

// draw draws the table, with the filter in the bottom border.
func (r *replicas) draw(area grid.Area, c *pane.Frame) {
	engines.Replicas(area, &r.shown, r.typing, c)
	r.drawFilter(area, r.shown.List.Filter.Text(), table.ReplicaSyntax, c.Skin)
}
