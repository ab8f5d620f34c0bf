package ui

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// requests is the table of requests as the user has arranged it, and the line in which its filter is typed.
type requests struct {
	shown panes.RequestTable
	at    table.Key // the request that is selected

	one panes.RequestView // it alone
	was table.Key         // what that showed last

	typing bool
	line   editor
	before table.Filter // to go back to
	err    error        // what is wrong with the filter being typed
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
	box := area.Sub(1, area.H-1, area.W-2, 1)
	switch {
	case r.typing:
		drawFilter(box, &r.line, r.err, table.Syntax, c.Skin)
	case t.List.Filter.Text() != "":
		words := " filter: " + sanitize.Line(t.List.Filter.Text()) + " "
		box.Elide(1, 0, box.W-2, grid.Fg(theme.Accent), words, c.Skin.Glyphs.Ellipsis)
	}
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
		r.typing, r.before, r.err = true, l.Filter, nil
		r.line.show()
		r.line.set(l.Filter.Text(), "")
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
func (r *requests) onClick(x, y int) (again bool) {
	t := &r.shown
	for _, h := range t.Heads {
		if h.At.Has(x, y) {
			r.sort(h.Field)
			return false
		}
	}
	if t.Body.Has(x, y) {
		row := t.First + y - t.Body.Y
		again = row == t.Selected
		r.pin(row)
	}
	return again
}

// unfilter takes the filter away and reports whether there was one.
func (r *requests) unfilter() bool {
	was := r.shown.List.Filter.Text() != ""
	r.shown.List.Filter = table.Filter{}
	return was
}

// onKey edits the filter, which is in force as far as it can be read.
func (r *requests) onKey(name, text string) {
	switch name {
	case "enter":
		if r.err == nil {
			r.typing = false
		}
		return
	case "esc", "ctrl+c":
		r.typing, r.shown.List.Filter = false, r.before
		return
	}
	r.line.edit(name, text)
	r.apply()
}

// paste puts pasted text into the filter.
func (r *requests) paste(text string) {
	r.line.insert(text)
	r.apply()
}

// apply has the rows chosen by what has been typed. What cannot be read changes nothing.
func (r *requests) apply() {
	f, err := table.Parse(string(r.line.text))
	if r.err = err; err == nil {
		r.shown.List.Filter = f
	}
}

// drawFilter draws a filter that is typed, with what is wrong with it.
func drawFilter(a grid.Area, line *editor, wrong error, syntax string, skin *theme.Skin) {
	a.Fill(0, 0, a.W, grid.Fg(theme.Dim), ' ')
	a.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), "/")
	used := line.drawText(a.Sub(3, 0, a.W-4, 1), skin.Glyphs.ASCII)
	note, st := "enter keep  esc undo", theme.Dim
	if wrong != nil {
		note, st = sanitize.Line(wrong.Error()), theme.Bad
	} else if len(line.text) == 0 {
		note = syntax + "   enter keep  esc undo"
	}
	if x := 3 + used + 3; x < a.W {
		a.Elide(x, 0, a.W-x-1, grid.Fg(st), note, skin.Glyphs.Ellipsis)
	}
}
