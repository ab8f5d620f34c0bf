package ui

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Session is one of several engines on the screen.
type Session struct {
	Name      string                 // tells it from the others, for example its address; it never changes
	Snapshots func() *store.Snapshot // like Config.Snapshots
	Changed   <-chan struct{}        // like Config.Changed
	Past      func() Past            // like Config.Past
	Actions   Actions
}

// engines is the list of sessions.
type engines struct {
	rows            []panes.EngineRow // what was seen of each, while the list is open
	selected, first int
	at              panes.EnginesAt // where they are on the screen
}

// meet takes the sessions as they are now. The one on show stays on show as long as it is there.
func (a *app) meet() {
	if a.cfg.Sessions == nil {
		if a.sessions == nil {
			a.sessions = []Session{{Snapshots: a.cfg.Snapshots, Changed: a.cfg.Changed, Past: a.cfg.Past, Actions: a.cfg.Actions}}
			a.choose(0)
		}
		return
	}
	a.sessions = a.cfg.Sessions()
	i := slices.IndexFunc(a.sessions, func(s Session) bool { return s.Name == a.session.Name })
	switch {
	case len(a.sessions) == 0:
		a.session, a.snap, a.panes.Engine = Session{}, &store.Snapshot{}, ""
	case i < 0 && a.session.Name != "": // others have taken its place
		a.choose(0)
		a.show(viewEngines)
	case i < 0 || a.session.Snapshots == nil:
		a.choose(max(i, 0))
	default:
		a.session = a.sessions[i]
		a.name(i)
	}
	a.engines.selected = max(min(a.engines.selected, len(a.sessions)-1), 0)
}

// choose puts a session on show, with nothing kept of the one before.
func (a *app) choose(i int) {
	if i >= len(a.sessions) {
		return
	}
	a.session = a.sessions[i]
	if a.snap = a.seen(a.session); a.snap == panes.NotKept {
		a.say("of this engine the past is not kept for so long")
	}
	a.rekey()
	a.panes.Memory, a.panes.Scroll = &panes.Memory{}, 0
	a.requests.follow()
	a.showMarks()
	a.experts.shown.Forget()
	a.engines.selected = i
	a.replicas.at = sanitize.Line(a.session.Name)
	a.replicas.arrange()
	a.name(i)
	a.dirty = true
}

// showEngine shows the engine that is chosen in the list.
func (a *app) showEngine() {
	i := a.engines.selected
	if a.replicas.on {
		i = a.replicas.chosen()
	}
	if i >= 0 {
		a.choose(i)
		a.show(viewOverview)
	}
}

// name tells the header which of several engines is on show.
func (a *app) name(i int) {
	name := ""
	if len(a.sessions) > 1 {
		name = panes.Ordinal(i, len(a.sessions)) + " " + sanitize.Line(a.session.Name)
	}
	a.dirty = a.dirty || name != a.panes.Engine
	a.panes.Engine = name
}

// turn goes to the next engine or the one before.
func (a *app) turn(forward bool) {
	step := 1
	if !forward {
		step = len(a.sessions) - 1
	}
	i := slices.IndexFunc(a.sessions, func(s Session) bool { return s.Name == a.session.Name })
	a.choose((max(i, 0) + step) % len(a.sessions))
}

// survey looks at all engines for the list. Another look is worth a frame if one of them has something new.
func (a *app) survey() {
	if a.view != viewEngines {
		return
	}
	news := len(a.engines.rows) != len(a.sessions)
	a.engines.rows = slices.Grow(a.engines.rows, len(a.sessions))[:len(a.sessions)]
	looks := 0
	a.panes.Behind = 0
	for i, s := range a.sessions {
		if a.behind(s) {
			if looks++; looks > looksAtOnce {
				a.panes.Behind++
				if a.engines.rows[i].Snapshot == nil {
					a.engines.rows[i] = panes.EngineRow{Name: sanitize.Line(s.Name), Snapshot: panes.NotKept}
				}
				continue
			}
		}
		row := panes.EngineRow{Name: sanitize.Line(s.Name), Snapshot: a.seen(s), Shown: s.Name == a.session.Name}
		if s.Name == "" { // the only one
			row.Name, row.Snapshot = sanitize.Line(a.snap.Engine.Name), a.snap
		}
		news = news || row != a.engines.rows[i]
		a.engines.rows[i] = row
	}
	a.dirty = a.dirty || news
	a.replicas.look(a.engines.rows, &a.panes)
}
