package ui

import (
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// watched is what the machine is sampled more closely for: nil while nobody looks at it.
type watched struct {
	watch func(model string, on bool)
	model string
	name  string // of the engine
}

// drawSystem draws the machine with the token that is looked at in the view of the request.
func (a *app) drawSystem(area grid.Area) {
	a.requests.look(a.snap)
	panes.System(area, &a.requests.one, a.snap, &a.panes)
}

// watch has the machine sampled more closely as long as it is on the screen.
func (a *app) watch() {
	on := a.view == viewSystem || a.view == viewPane && a.panes.Focus == panes.Machine
	now := watched{watch: a.session.Actions.Watch, model: a.snap.Model.Path, name: a.session.Name}
	was := &a.watched
	if was.watch != nil && (!on || now.name != was.name || now.model != was.model) {
		was.watch(was.model, false)
		*was = watched{}
	}
	if on && was.watch == nil && now.watch != nil {
		now.watch(now.model, true)
		*was = now
	}
}

// inspect has what costs more than a sample may be measured.
func (a *app) inspect() {
	a.session.Actions.Inspect(a.snap.Model.Path)
	a.say("PSS and page cache: told with the next sample")
}
