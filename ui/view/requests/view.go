// Package requests is the Requests view: the table of requests.
package requests

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/request"
)

// View is the Requests view: the request table as arranged by the user, with the screen positions of the last frame.
type View struct {
	view.Base
	pane.Rows
	Heads []pane.Head[table.Field]
	*table.Selection
	List     *table.Requests
	Timeline bool // show the timeline instead of the list

	program view.Program
	filter  input.Filter[table.Filter[*store.Request]]
	open    func() // shows the selected request
}

// New makes the view of a program. It selects in selection; open shows the selected request.
func New(program view.Program, selection *table.Selection, open func()) *View {
	return &View{program: program, Selection: selection, List: table.NewRequests(), open: open}
}

// Name implements view.View.
func (v *View) Name() string { return "Requests" }

// Missing implements view.View.
func (v *View) Missing(s *store.Snapshot) (why, advice string) { return request.Missing(s) }

// Draw updates and draws the table, with the filter in the bottom border.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.update(s)
	if v.Timeline {
		f.Windowed(a, s, func(s *store.Snapshot) { drawTimeline(a, s, f, v) })
	} else {
		drawTable(a, s, f, v)
	}
	v.filter.Draw(a, v.List.Filter.Text(), table.RequestFilters.Example, f.Skin)
}

// Open updates the table, so that keys find its rows before the first frame.
func (v *View) Open() { v.update(v.program.Snapshot()) }

// Reset follows the newest request.
func (v *View) Reset() { v.Follow = true }

// update takes the requests of a snapshot and finds the row of the selected one: the current request while following,
// otherwise the one that the user selected. If that is no longer in the list, the selection stays in its row.
func (v *View) update(s *store.Snapshot) {
	v.List.Update(s)
	if v.Follow && s.Current != nil {
		v.Key = table.KeyOf(s.Current)
	}
	rows := v.List.Rows
	if i := v.List.Index(v.Key); i >= 0 {
		v.Selected = i
	} else if v.Follow {
		v.Selected = 0
	}
	v.Select(v.Selected, len(rows))
	if len(rows) > 0 && !v.Follow {
		v.Key = table.KeyOf(rows[v.Selected])
	}
}

// Scroll moves the selection by a number of rows and pins the request there.
func (v *View) Scroll(by int) { v.pin(v.Selected + by) }

// Step selects a request by rows above or below the selected one, of the current snapshot.
func (v *View) Step(by int) {
	v.Open()
	v.Scroll(by)
}

// pin selects the request of a row, or of the nearest valid row.
func (v *View) pin(row int) {
	if n := len(v.List.Rows); n > 0 {
		v.Select(row, n)
		v.Follow = false
		v.Key = table.KeyOf(v.List.Rows[v.Selected])
	}
}

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	keys := []view.Key{{Keys: []string{"enter"}, Show: "enter", Word: "open", Help: "open the selected request; or click it", Do: v.openSelected}}
	keys = append(keys, view.Key{Keys: []string{"v"}, Show: "v", Word: "timeline", Help: "switch between the list and the timeline of the window: who ran and who waited", Do: func() { v.Timeline = !v.Timeline }})
	start := func() { v.filter.Start(v.List.Filter, v.List.Filter.Text()) }
	keys = append(keys, view.TableKeys("requests", table.RequestFilters.Example, start, v.sortColumn, func() { v.sort(v.List.By) }, nil)...)
	return append(keys, request.SelectionKeys(v.program, v.Selection, v.Pin)...)
}

func (v *View) openSelected() {
	v.Pin()
	v.open()
}

// Pin stops following and keeps the selected request.
func (v *View) Pin() { v.pin(v.Selected) }

// sort sorts by a field and selects the first row. While following, sorting by age keeps following as long as the
// newest comes first.
func (v *View) sort(by table.Field) {
	v.List.Update(v.program.Snapshot())
	v.List.SortBy(by)
	if v.Follow && by == table.Age && !v.List.Down {
		return
	}
	v.Follow, v.First, v.Selected, v.Key = false, 0, 0, table.Key{}
}

// sortColumn sorts by a column to the right, or to the left, of the current one. It skips columns that say nothing.
func (v *View) sortColumn(by int) {
	v.List.Update(v.program.Snapshot())
	next := v.List.By
	for range table.NumFields {
		next = table.Field((int(next) + by + int(table.NumFields)) % int(table.NumFields))
		if varies(v.List, next) {
			break
		}
	}
	v.sort(next)
}

// Click sorts by the column head under the mouse, or selects the row there; a second click opens it.
func (v *View) Click(x, y int) {
	if pane.ClickTable(&v.Rows, v.Heads, x, y, v.sort, v.pin) {
		v.openSelected()
	}
}

// Back removes the filter.
func (v *View) Back() bool {
	filtered := v.List.Filter.Text() != ""
	v.List.Filter = table.Filter[*store.Request]{}
	return filtered
}

// Typing implements view.View.
func (v *View) Typing() bool { return v.filter.Typing }

// Type edits the filter.
func (v *View) Type(key, text string) {
	v.filter.Edit(key, text, &v.List.Filter, table.RequestFilters.Parse)
}

// Paste inserts text into the filter.
func (v *View) Paste(text string) { v.filter.Insert(text, &v.List.Filter, table.RequestFilters.Parse) }
