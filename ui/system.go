package ui

import (
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/system"
)

// watched is the model whose machine is sampled more closely; the zero value: none.
type watched struct {
	watch func(model string, on bool)
	model string
	name  string // of the engine
}

// drawSystem draws the machine with the selected token of the request.
func (a *app) drawSystem(area grid.Area) {
	a.requests.updateDetail(a.snap)
	system.Draw(area, &a.machine, &a.requests.detail, a.snap, &a.panes)
}

// watch requests closer sampling of the machine as long as it is on the screen.
func (a *app) watch() {
	on := a.view == viewSystem || a.view == viewPane && a.focus == overview.Machine
	wanted := watched{watch: a.session.Actions.Watch, model: a.snap.Model.Path, name: a.session.Name}
	current := &a.watched
	if current.watch != nil && (!on || wanted.name != current.name || wanted.model != current.model) {
		current.watch(current.model, false)
		*current = watched{}
	}
	if on && current.watch == nil && wanted.watch != nil {
		wanted.watch(wanted.model, true)
		*current = wanted
	}
}

// inspect measures once what is too expensive for periodic samples.
func (a *app) inspect() {
	a.session.Actions.Inspect(a.snap.Model.Path)
	a.notify("PSS and page cache: shown with the next sample")
}
