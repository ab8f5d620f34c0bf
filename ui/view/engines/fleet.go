package engines

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// minFleet is the minimum number of engines to compare as replicas, if they report aggregate metrics.
const minFleet = 3

// Fleet is the table of replicas as arranged by the user: the engines as rows that are compared.
type Fleet struct {
	pane.Rows
	Heads    []pane.Head[fleet.Field]
	List     table.List[*fleet.Replica, fleet.Field]
	Outliers []fleet.Outlier

	outlierLines []string                                 // description of the outliers, one line per replica
	noOutliers   string                                   // shown if no replica is an outlier
	outlierCells map[*fleet.Replica][fleet.NumFields]bool // cells that are outliers

	Enabled      bool // the engines form a fleet
	all          []*fleet.Replica
	measured     []*store.Snapshot // snapshots of the last measurement
	window       metric.Window
	selectedName string // name of the selected replica; "": the first

	filter input.Filter[table.Filter[*fleet.Replica]]
}

// isFleet reports whether engines are compared as replicas.
func isFleet(rows []Row) bool {
	return len(rows) >= minFleet && slices.ContainsFunc(rows, func(r Row) bool { return r.Snapshot.Polled() })
}

// update measures the replicas with new data.
func (r *Fleet) update(f *pane.Frame, rows []Row) {
	if r.Enabled = isFleet(rows); !r.Enabled {
		r.filter.Typing = false
		return
	}
	measureAll := len(r.all) != len(rows) || r.window != f.Window
	changed, arrange := measureAll, measureAll || r.List.By.Unit() != metric.Word || r.List.Filter.Text() != ""
	r.window = f.Window
	for len(r.all) < len(rows) {
		r.all, r.measured = append(r.all, &fleet.Replica{}), append(r.measured, nil)
	}
	r.all, r.measured = r.all[:len(rows)], r.measured[:len(rows)]
	for i, row := range rows {
		one := r.all[i]
		state, broken := stateOf(f, row)
		if !measureAll && r.measured[i] == row.Snapshot && one.Name == row.Name && one.State == state {
			continue
		}
		model := sanitize.Line(row.Snapshot.Model.Name)
		changed, arrange = true, arrange || one.Name != row.Name || one.State != state || one.Model != model // the words that rows are sorted by
		one.Name, one.State, one.Broken, one.Model, r.measured[i] = row.Name, state, broken, model, row.Snapshot
		one.Measure(row.Snapshot, f.Window)
	}
	if changed {
		r.FindOutliers(r.all)
	}
	if changed && arrange {
		r.arrange()
	}
}

// arrange filters and sorts the rows and keeps the selected replica.
func (r *Fleet) arrange() {
	r.List.Update(&table.ReplicaFilters, r.all)
	if i := slices.IndexFunc(r.List.Rows, func(one *fleet.Replica) bool { return one.Name == r.selectedName }); i >= 0 && r.selectedName != "" {
		r.Selected = i
	}
	r.Select(r.Selected, len(r.List.Rows))
}

// pin selects the replica of a row, or of the nearest valid row.
func (r *Fleet) pin(row int) {
	if n := len(r.List.Rows); n > 0 {
		r.Select(row, n)
		r.selectedName = r.List.Rows[r.Selected].Name
	}
}

// sort sorts by a field and selects the first row.
func (r *Fleet) sort(by fleet.Field) {
	r.List.SortBy(by)
	r.selectedName, r.Selected, r.First = "", 0, 0
	r.arrange()
}

// sortColumn sorts by a column to the right, or to the left, of the current one.
func (r *Fleet) sortColumn(by int) {
	r.sort(fleet.Field((int(r.List.By) + by + int(fleet.NumFields)) % int(fleet.NumFields)))
}

// unfilter removes the filter and reports whether there was one.
func (r *Fleet) unfilter() bool {
	filtered := r.Enabled && r.List.Filter.Text() != ""
	r.List.Filter = table.Filter[*fleet.Replica]{}
	r.arrange()
	return filtered
}
