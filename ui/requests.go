package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/request"
	"github.com/llmtop/llmtop/ui/view/requests"
)

// requests is the state of the requests table and of the selected request: arrangement, selection and filter line.
type requestsState struct {
	shown       requests.Table
	selectedKey table.Key // key of the selected request

	detail    request.View // view of the selected request
	detailKey table.Key    // key of the request that detail showed last

	filtering[table.Filter]
}

func newRequests() requestsState {
	return requestsState{shown: requests.Table{List: table.NewList(), Follow: true}}
}

// follow keeps the newest request selected.
func (r *requestsState) follow() { r.shown.Follow = true }

// draw updates and draws the table, with the filter in the bottom border while the user types.
func (r *requestsState) draw(area grid.Area, s *store.Snapshot, c *pane.Frame) {
	t := &r.shown
	r.refresh(s)
	requests.Draw(area, t, s, c)
	r.drawFilter(area, t.List.Filter.Text(), table.Syntax, c.Skin)
}

// refresh updates the table from a snapshot.
func (r *requestsState) refresh(s *store.Snapshot) {
	r.shown.List.Update(s)
	r.selectRow(s)
}

// selectRow finds the row of the selected request: the current request while following, otherwise the one that the user
// selected. If that is no longer in the list, the selection stays in its row.
func (r *requestsState) selectRow(s *store.Snapshot) {
	t := &r.shown
	if t.Follow && s.Current != nil {
		r.selectedKey = table.KeyOf(s.Current)
	}
	rows := t.List.Rows
	if i := t.List.Index(r.selectedKey); i >= 0 {
		t.Selected = i
	} else if t.Follow {
		t.Selected = 0
	}
	t.Selected = max(min(t.Selected, len(rows)-1), 0)
	if len(rows) > 0 && !t.Follow {
		r.selectedKey = table.KeyOf(rows[t.Selected])
	}
}

// move moves the selection by a number of rows and pins the request there.
func (r *requestsState) move(by int) { r.pin(r.shown.Selected + by) }

// pin selects the request of a row, or of the nearest valid row.
func (r *requestsState) pin(row int) {
	t := &r.shown
	if n := len(t.List.Rows); n > 0 {
		t.Selected, t.Follow = max(min(row, n-1), 0), false
		r.selectedKey = table.KeyOf(t.List.Rows[t.Selected])
	}
}

// do performs a key action of the table.
func (r *requestsState) do(act action, s *store.Snapshot) {
	l := r.shown.List
	l.Update(s)
	switch act {
	case actFilter:
		r.start(l.Filter, l.Filter.Text())
	case actFollow:
		if r.shown.Follow {
			r.pin(r.shown.Selected)
		} else {
			r.follow()
		}
	case actColumnLeft, actColumnRight:
		r.nextColumn(act == actColumnRight)
	case actReverse:
		r.sort(l.By)
	}
}

// sort sorts by a field and selects the first row. While following, sorting by age keeps following as long as the
// newest comes first.
func (r *requestsState) sort(by table.Field) {
	t := &r.shown
	t.List.SortBy(by)
	if t.Follow && by == table.Age && !t.List.Down {
		return
	}
	t.Follow, t.First, t.Selected, r.selectedKey = false, 0, 0, table.Key{}
}

// nextColumn sorts by the next column to the right or left, and makes it visible if it was dropped.
func (r *requestsState) nextColumn(right bool) {
	step := table.Field(1)
	if !right {
		step = table.NumFields - 1
	}
	r.sort((r.shown.List.By + step) % table.NumFields)
}

// onClick sorts by the column header under the mouse, or selects the row there; it reports whether that row was
// selected already.
func (r *requestsState) onClick(x, y int) (again bool) {
	return click(&r.shown.Rows, x, y, r.sort, r.pin)
}

// unfilter removes the filter and reports whether there was one.
func (r *requestsState) unfilter() bool {
	filtered := r.shown.List.Filter.Text() != ""
	r.shown.List.Filter = table.Filter{}
	return filtered
}

// onKey edits the filter.
func (r *requestsState) onKey(name, text string) {
	r.edit(name, text, &r.shown.List.Filter, table.Parse)
}

// paste inserts pasted text into the filter.
func (r *requestsState) paste(text string) { r.insert(text, &r.shown.List.Filter, table.Parse) }
