package ui

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// watchAlerts takes how the alerts stand, and says a word when one begins to fire or has resolved. It is worth a frame if something that is
// shown has changed.
func (a *app) watchAlerts() {
	if a.cfg.Alerts == nil {
		return
	}
	now := a.cfg.Alerts()
	was := a.panes.Alerts
	if slices.Equal(now, was) {
		return
	}
	for i := range now {
		if i >= len(was) || was[i].State == now[i].State || a.toastIn > 0 {
			continue
		}
		switch name := sanitize.Line(now[i].Name); now[i].State {
		case alert.Firing:
			a.say("alert " + name + ": " + now[i].Value + " (a lists alerts)")
		case alert.Resolved:
			a.say("alert " + name + " has resolved")
		}
		a.dirty = true
	}
	a.dirty = a.dirty || a.alerts || len(now) != len(was)
	a.panes.Alerts = now
}
