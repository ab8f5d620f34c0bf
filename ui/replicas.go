package ui

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// fleetFrom is from how many engines on they are compared as replicas, if they are servers that tell of themselves in sum.
const fleetFrom = 3

// replicas is the list of engines as a fleet.
type replicas struct {
	on    bool // there is one
	shown panes.ReplicaTable
	all   []*fleet.Replica
	seen  []*store.Snapshot // what they were measured by
	over  metric.Window
	at    string // the one that is selected; "": the first

	filtering[table.ReplicaFilter]
}

// isFleet reports whether engines are compared as replicas.
func isFleet(rows []panes.EngineRow) bool {
	return len(rows) >= fleetFrom && slices.ContainsFunc(rows, func(r panes.EngineRow) bool {
		return r.Snapshot.Reported != nil || r.Snapshot.Engine.Caps.Has(event.CapReports)
	})
}

// look measures the replicas of which there is something new.
func (r *replicas) look(rows []panes.EngineRow, c *panes.Ctx) {
	if r.on = isFleet(rows); !r.on {
		r.typing = false
		return
	}
	anew := len(r.all) != len(rows) || r.over != c.Window
	r.over = c.Window
	for len(r.all) < len(rows) {
		r.all, r.seen = append(r.all, &fleet.Replica{}), append(r.seen, nil)
	}
	r.all, r.seen = r.all[:len(rows)], r.seen[:len(rows)]
	for i, row := range rows {
		one := r.all[i]
		word, broken := c.ReplicaState(row)
		if !anew && r.seen[i] == row.Snapshot && one.Name == row.Name && one.State == word {
			continue
		}
		anew, r.seen[i] = true, row.Snapshot
		one.Name, one.State, one.Broken, one.Model = row.Name, word, broken, sanitize.Line(row.Snapshot.Model.Name)
		one.Measure(row.Snapshot, c.Window)
	}
	if anew {
		r.shown.Judge(r.all)
		r.arrange()
	}
}

// arrange filters and sorts, and stays with the replica that is selected.
func (r *replicas) arrange() {
	t := &r.shown
	t.List.Update(r.all)
	if i := slices.IndexFunc(t.List.Rows, func(one *fleet.Replica) bool { return one.Name == r.at }); i >= 0 && r.at != "" {
		t.Selected = i
	}
	t.Selected = max(min(t.Selected, len(t.List.Rows)-1), 0)
}

// pin selects the replica of a row, or of the nearest one there is.
func (r *replicas) pin(row int) {
	t := &r.shown
	if n := len(t.List.Rows); n > 0 {
		t.Selected = max(min(row, n-1), 0)
		r.at = t.List.Rows[t.Selected].Name
	}
}

// chosen is the number of the engine that is selected, -1 if there is none.
func (r *replicas) chosen() int {
	t := &r.shown
	if t.Selected >= len(t.List.Rows) {
		return -1
	}
	return slices.Index(r.all, t.List.Rows[t.Selected])
}

// do does what a key of the table says.
func (r *replicas) do(act action) {
	l := &r.shown.List
	switch act {
	case actFilter:
		r.begin(l.Filter, l.Filter.Text())
	case actColumnLeft:
		r.sort((l.By + fleet.NumFields - 1) % fleet.NumFields)
	case actColumnRight:
		r.sort((l.By + 1) % fleet.NumFields)
	case actReverse:
		r.sort(l.By)
	}
}

// sort sorts by a field and shows what comes first.
func (r *replicas) sort(by fleet.Field) {
	r.shown.List.SortBy(by)
	r.at, r.shown.Selected, r.shown.First = "", 0, 0
	r.arrange()
}

// onClick sorts by the head under the mouse, or selects the row there; it reports whether that was selected before.
func (r *replicas) onClick(x, y int) (again bool) { return click(&r.shown.Rows, x, y, r.sort, r.pin) }

// unfilter takes the filter away and reports whether there was one.
func (r *replicas) unfilter() bool {
	was := r.on && r.shown.List.Filter.Text() != ""
	r.shown.List.Filter = table.ReplicaFilter{}
	r.arrange()
	return was
}

// onKey edits the filter.
func (r *replicas) onKey(name, text string) {
	if r.edit(name, text, &r.shown.List.Filter, table.ParseReplicas) {
		r.arrange()
	}
}

// paste puts pasted text into the filter.
func (r *replicas) paste(text string) {
	if r.insert(text, &r.shown.List.Filter, table.ParseReplicas) {
		r.arrange()
	}
}

// draw draws the table, with the filter in the lower border.
func (r *replicas) draw(area grid.Area, c *panes.Ctx) {
	panes.Replicas(area, &r.shown, r.typing, c)
	r.drawOn(area, r.shown.List.Filter.Text(), table.ReplicaSyntax, c.Skin)
}
