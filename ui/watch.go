package ui

// watched is the model whose machine is sampled more closely; the zero value: none.
type watched struct {
	watch func(model string, on bool)
	model string
	name  string // of the engine
}

// update requests closer sampling of the wanted model as long as its machine is on the screen.
func (w *watched) update(wanted watched, on bool) {
	if w.watch != nil && (!on || wanted.name != w.name || wanted.model != w.model) {
		w.watch(w.model, false)
		*w = watched{}
	}
	if on && w.watch == nil && wanted.watch != nil {
		wanted.watch(wanted.model, true)
		*w = wanted
	}
}
