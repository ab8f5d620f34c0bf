package ui

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/table"
)

// Choices are what the user has chosen on the screen, to be remembered, by the names that the screen shows. What is "" or unknown is left
// as it is by default.
type Choices struct {
	Theme   string `json:"theme,omitempty"`
	View    string `json:"view,omitempty"`
	Window  string `json:"window,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Sort    string `json:"sort,omitempty"` // column of the table of requests
	Reverse bool   `json:"reverse,omitempty"`
}

// recalled are the views with which the screen may begin: those that need no request or engine to be chosen.
var recalled = []view{viewOverview, viewRequests, viewLatency, viewExperts, viewSystem}

// recall makes the choices of the last time. The theme is Config's.
func (a *app) recall(c Choices) {
	for w := range metric.NumWindows {
		if w.String() == c.Window {
			a.panes.Window = w
		}
	}
	for p := range metric.NumPhases {
		if p.String() == c.Phase {
			a.panes.Phase = p
		}
	}
	for f := range table.NumFields {
		if f.String() == c.Sort {
			a.requests.shown.List.By, a.requests.shown.List.Down = f, c.Reverse
			a.requests.shown.Follow = f == table.Age && !c.Reverse
		}
	}
	for _, v := range recalled {
		if strings.ToLower(tabNames[v]) == c.View {
			a.view = v
		}
	}
}

// choices are those of now.
func (a *app) choices() Choices {
	v := a.view
	if v == viewHelp || v == viewEngines {
		v = a.before
	}
	if !slices.Contains(recalled, v) {
		v = viewOverview
	}
	l := a.requests.shown.List
	return Choices{
		Theme: theme.Palettes()[a.theme].Name, View: strings.ToLower(tabNames[v]), Window: a.panes.Window.String(),
		Phase: a.panes.Phase.String(), Sort: l.By.String(), Reverse: l.Down,
	}
}
