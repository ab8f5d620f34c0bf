package ui

import (
	"github.com/llmtop/llmtop/ui/view/overview"
)

// watched is the model whose machine is sampled more closely; the zero value: none.
type watched struct {
	watch func(model string, on bool)
	model string
	name  string // of the engine
}

// watch requests closer sampling of the machine as long as it is on the screen.
func (a *app) watch() {
	on := a.view == viewSystem || a.view == viewPane && a.overview.Focus == overview.Machine
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
