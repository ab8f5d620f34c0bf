package ui

import (
	"strconv"

	"github.com/llmtop/llmtop/ui/pane"
)

// maxMarks bounds the marks per engine; the oldest is removed. Each holds a snapshot, which shares most of its memory
// with others.
const maxMarks = 9

// marks holds the moments to compare with, by the name of the engine on which the user set them, oldest first.
type marks struct {
	byEngine map[string][]pane.Mark
	count    int  // number of marks ever set
	open     bool // the list of changes is open
}

// mark marks the moment on the screen. Changes are shown since the newest mark.
func (a *app) mark() {
	m := &a.marks
	if m.byEngine == nil {
		m.byEngine = make(map[string][]pane.Mark)
	}
	m.count++
	list := append(m.byEngine[a.session.Name], pane.Mark{Name: "m" + strconv.Itoa(m.count), Snapshot: a.snap})
	m.byEngine[a.session.Name] = list[max(len(list)-maxMarks, 0):]
	a.showMarks()
	a.Notify("mark m" + strconv.Itoa(m.count) + " set: press M to show changes since then")
}

// clearMarks removes the marks of the engine on the screen.
func (a *app) clearMarks() {
	delete(a.marks.byEngine, a.session.Name)
	a.marks.open = false
	a.showMarks()
	a.Notify("marks cleared")
}

// toggleSince shows or hides the changes since the newest mark.
func (a *app) toggleSince() {
	if len(a.panes.Marks) == 0 {
		a.Notify("no mark yet: press m to set one")
		return
	}
	a.marks.open = !a.marks.open
}

// showMarks passes the marks of the engine on the screen to the panes.
func (a *app) showMarks() { a.panes.Marks = a.marks.byEngine[a.session.Name] }
