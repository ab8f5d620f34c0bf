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
	app      *app
	byEngine map[string][]pane.Mark
	count    int  // number of marks ever set
	open     bool // the list of changes is open
}

// add marks the moment on the screen. Changes are shown since the newest mark.
func (m *marks) add() {
	a := m.app
	if m.byEngine == nil {
		m.byEngine = make(map[string][]pane.Mark)
	}
	m.count++
	list := append(m.byEngine[a.session.Name], pane.Mark{Name: "m" + strconv.Itoa(m.count), Snapshot: a.snap})
	m.byEngine[a.session.Name] = list[max(len(list)-maxMarks, 0):]
	m.show()
	a.Notify("mark m" + strconv.Itoa(m.count) + " set: press M to show changes since then")
}

// clear removes the marks of the engine on the screen.
func (m *marks) clear() {
	delete(m.byEngine, m.app.session.Name)
	m.open = false
	m.show()
	m.app.Notify("marks cleared")
}

// toggle shows or hides the changes since the newest mark.
func (m *marks) toggle() {
	if len(m.app.panes.Marks) == 0 {
		m.app.Notify("no mark yet: press m to set one")
		return
	}
	opens := !m.shown()
	m.app.closePopup()
	m.open = opens
}

// shown reports whether the list of changes is on the screen.
func (m *marks) shown() bool {
	return m.open && len(m.app.panes.Marks) > 0 && m.app.view != viewEngines
}

// show passes the marks of the engine on the screen to the panes.
func (m *marks) show() { m.app.panes.Marks = m.byEngine[m.app.session.Name] }
