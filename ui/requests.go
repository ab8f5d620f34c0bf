package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/table"
)

// requests is the table of requests as the user has arranged it, and the line in which its filter is typed.
type requests struct {
	shown panes.RequestTable
	at    table.Key // the request that is selected

	one panes.RequestView // it alone
	was table.Key         // what that showed last

	filtering[table.Filter]
}

func newRequests() requests {
	return requests{shown: panes.RequestTable{List: table.NewList(), Follow: true}}
}

// follow selects the newest request from now on.
func (r *requests) follow() { r.shown.Follow = true }

// draw takes the requests of a snapshot and draws them, with the filter in the lower border while it is typed.
func (r *requests) draw(area grid.Area, s *store.Snapshot, c *panes.Ctx) {
	t := &r.shown
	r.refresh(s)
	panes.Requests(area, t, s, c)
	r.drawOn(area, t.List.Filter.Text(), table.Syntax, c.Skin)
}

// refresh takes the requests of a snapshot.
func (r *requests) refresh(s *store.Snapshot) {
	r.shown.List.Update(s)
	r.settle(s)
}

// settle finds the row of the request that is selected: the one to look at while following, else the one that the user has chosen. If
// that is not in the list any more, the row stays and takes what is there now.
func (r *requests) settle(s *store.Snapshot) {
	t := &r.shown
	if t.Follow && s.Current != nil {
		r.at = table.KeyOf(s.Current)
	}
	rows := t.List.Rows
	if i := t.List.Index(r.at); i >= 0 {
		t.Selected = i
	} else if t.Follow {
		t.Selected = 0
	}
	t.Selected = max(min(t.Selected, len(rows)-1), 0)
	if len(rows) > 0 && !t.Follow {
		r.at = table.KeyOf(rows[t.Selected])
	}
}

// move goes some rows down and stays with the request there.
func (r *requests) move(by int) { r.pin(r.shown.Selected + by) }

// pin selects the request of a row, or of the nearest one there is.
func (r *requests) pin(row int) {
	t := &r.shown
	if n := len(t.List.Rows); n > 0 {
		t.Selected, t.Follow = max(min(row, n-1), 0), false
		r.at = table.KeyOf(t.List.Rows[t.Selected])
	}
}

// do does what a key of the table says.
func (r *requests) do(act action, s *store.Snapshot) {
	l := r.shown.List
	l.Update(s)
	switch act {
	case actFilter:
		r.begin(l.Filter, l.Filter.Text())
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

// sort sorts by a field and shows what comes first, which while following is the newest as long as that is what comes first.
func (r *requests) sort(by table.Field) {
	t := &r.shown
	t.List.SortBy(by)
	if t.Follow && by == table.Age && !t.List.Down {
		return
	}
	t.Follow, t.First, t.Selected, r.at = false, 0, 0, table.Key{}
}

// nextColumn sorts by the column beside the one that the rows are sorted by. One that there was no room for is shown then.
func (r *requests) nextColumn(right bool) {
	step := table.Field(1)
	if !right {
		step = table.NumFields - 1
	}
	r.sort((r.shown.List.By + step) % table.NumFields)
}

// onClick sorts by the head under the mouse, or selects the row there; it reports whether that was selected before.
func (r *requests) onClick(x, y int) (again bool) { return click(&r.shown.Rows, x, y, r.sort, r.pin) }

// unfilter takes the filter away and reports whether there was one.
func (r *requests) unfilter() bool {
	was := r.shown.List.Filter.Text() != ""
	r.shown.List.Filter = table.Filter{}
	return was
}

// onKey edits the filter.
func (r *requests) onKey(name, text string) {
	r.edit(name, text, &r.shown.List.Filter, table.Parse)
}

// paste puts pasted text into the filter.
func (r *requests) paste(text string) { r.insert(text, &r.shown.List.Filter, table.Parse) }
