package ui

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// updateAlerts takes the current alert states and shows a note when an alert begins to fire or resolves. It marks the
// frame as dirty if the screen shows something that changed.
func (a *app) updateAlerts() {
	if a.cfg.Alerts == nil {
		return
	}
	now := a.cfg.Alerts()
	before := a.status.Alerts
	if slices.Equal(now, before) {
		return
	}
	for i := range now {
		if i >= len(before) || before[i].State == now[i].State || a.toastIn > 0 {
			continue
		}
		switch name := sanitize.Line(now[i].Name); now[i].State {
		case alert.Firing:
			a.Notify("alert " + name + ": " + now[i].Value + " (a lists alerts)")
		case alert.Resolved:
			a.Notify("alert " + name + " resolved")
		}
		a.dirty = true
	}
	a.dirty = a.dirty || a.alertsOpen || len(now) != len(before)
	a.status.Alerts = now
}
