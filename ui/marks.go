package ui

import (
	"strconv"

	"github.com/llmtop/llmtop/ui/panes"
)

// maxMarks is how many marks of an engine are remembered; the oldest goes. Each holds a snapshot, which shares most of what it has with
// others.
const maxMarks = 9

// marks are moments that the user wants to compare with, by the name of the engine on which they were set, oldest first.
type marks struct {
	of   map[string][]panes.Mark
	set  int  // marks so far
	open bool // the difference is shown
}

// mark remembers the moment on show. The difference is told from the newest mark on.
func (a *app) mark() {
	m := &a.marks
	if m.of == nil {
		m.of = make(map[string][]panes.Mark)
	}
	m.set++
	list := append(m.of[a.session.Name], panes.Mark{Name: "m" + strconv.Itoa(m.set), Snapshot: a.snap})
	m.of[a.session.Name] = list[max(len(list)-maxMarks, 0):]
	a.showMarks()
	a.say("mark m" + strconv.Itoa(m.set) + " set: M shows what has changed since")
}

// unmark takes the marks of the engine on show away.
func (a *app) unmark() {
	delete(a.marks.of, a.session.Name)
	a.marks.open = false
	a.showMarks()
	a.say("marks cleared")
}

// toggleSince shows or hides what has changed since the newest mark.
func (a *app) toggleSince() {
	if len(a.panes.Marks) == 0 {
		a.say("no mark yet: m sets one")
		return
	}
	a.marks.open = !a.marks.open
}

// showMarks has the panes draw the marks of the engine on show.
func (a *app) showMarks() { a.panes.Marks = a.marks.of[a.session.Name] }
