package ui

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/engines"
)

// Session is one of several engines on the screen.
type Session struct {
	Name      string                 // unique and constant, for example the address
	Snapshots func() *store.Snapshot // like Config.Snapshots
	Changed   <-chan struct{}        // like Config.Changed
	Past      func() Past            // like Config.Past
	Actions   Actions
}

// updateSessions takes the current sessions. The one on the screen stays there as long as it exists.
func (a *app) updateSessions() {
	if a.cfg.Sessions == nil {
		if a.sessions == nil {
			a.sessions = []Session{{Snapshots: a.cfg.Snapshots, Changed: a.cfg.Changed, Past: a.cfg.Past, Actions: a.cfg.Actions}}
			a.showSession(0)
		}
		return
	}
	a.sessions = a.cfg.Sessions()
	i := slices.IndexFunc(a.sessions, func(s Session) bool { return s.Name == a.session.Name })
	switch {
	case len(a.sessions) == 0:
		a.session, a.snap, a.status.Engine = Session{}, &store.Snapshot{}, ""
		a.updateOffers()
	case i < 0 && a.session.Name != "": // other sessions replaced it
		a.showSession(0)
		a.show(viewEngines)
	case i < 0 || a.session.Snapshots == nil:
		a.showSession(max(i, 0))
	default:
		a.session = a.sessions[i]
		a.updateEngineName(i)
	}
	a.engines.Clamp(len(a.sessions))
}

// showSession shows a session and resets the state of the one before.
func (a *app) showSession(i int) {
	if i >= len(a.sessions) {
		return
	}
	a.session = a.sessions[i]
	a.offered = 0 // a view of another engine does not stay
	if a.snap = a.snapshotOf(a.session); a.snap == chrome.NotKept {
		a.Notify("no history of this engine at this time")
	}
	a.updateOffers()
	a.panes.Scratch = &pane.Scratch{}
	a.showMarks()
	for _, room := range a.views {
		if room, ok := room.(view.Resetter); ok {
			room.Reset()
		}
	}
	a.engines.Select(i, sanitize.Line(a.session.Name))
	a.updateEngineName(i)
	a.dirty = true
}

// showEngine shows an engine of the list.
func (a *app) showEngine(i int) {
	a.showSession(i)
	a.show(viewOverview)
}

// updateEngineName sets which of several engines the header shows.
func (a *app) updateEngineName(i int) {
	name := ""
	if len(a.sessions) > 1 {
		name = engines.Ordinal(i, len(a.sessions)) + " " + sanitize.Line(a.session.Name)
	}
	a.dirty = a.dirty || name != a.status.Engine
	a.status.Engine = name
}

// canSwitch reports whether there is another engine to show.
func (a *app) canSwitch() bool { return a.view != viewEngines && len(a.sessions) > 1 }

// switchEngine shows the next engine or the previous one.
func (a *app) switchEngine(forward bool) {
	step := 1
	if !forward {
		step = len(a.sessions) - 1
	}
	i := slices.IndexFunc(a.sessions, func(s Session) bool { return s.Name == a.session.Name })
	a.showSession((max(i, 0) + step) % len(a.sessions))
}

// updateEngines updates the list of engines while it is open. It needs a frame if an engine has new data.
func (a *app) updateEngines() {
	if a.view != viewEngines {
		return
	}
	rows := a.engines.Rows
	changed := len(rows) != len(a.sessions)
	rows = slices.Grow(rows, len(a.sessions))[:len(a.sessions)]
	loads := 0
	a.status.PendingEngines = 0
	for i, s := range a.sessions {
		if a.behind(s) {
			if loads++; loads > maxPastLoads {
				a.status.PendingEngines++
				if rows[i].Snapshot == nil {
					rows[i] = engines.Row{Name: sanitize.Line(s.Name), Snapshot: chrome.NotKept}
				}
				continue
			}
		}
		row := engines.Row{Name: sanitize.Line(s.Name), Snapshot: a.snapshotOf(s), Shown: s.Name == a.session.Name}
		if s.Name == "" { // the only one
			row.Name, row.Snapshot = sanitize.Line(a.snap.Engine.Name), a.snap
		}
		changed = changed || row != rows[i]
		rows[i] = row
	}
	a.dirty = a.dirty || changed
	a.engines.Update(rows, &a.panes)
}
