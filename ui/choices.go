package ui

import (
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/table"
)

// Choices holds the user's choices on the screen under their displayed names, for the next session. An empty or unknown
// value keeps the default. The view is not stored: the screen always starts with the overview.
type Choices struct {
	Theme   string `json:"theme,omitempty"`
	Window  string `json:"window,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Sort    string `json:"sort,omitempty"` // column of the requests table
	Reverse bool   `json:"reverse,omitempty"`
}

// restoreChoices applies the choices of the last session, except the theme, which Config.Theme sets.
func (a *app) restoreChoices(c Choices) {
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
			a.requests.List.By, a.requests.List.Down = f, c.Reverse
			a.requests.Follow = f == table.Age && !c.Reverse
		}
	}
}

// choices returns the current choices.
func (a *app) choices() Choices {
	l := a.requests.List
	return Choices{
		Theme: theme.Palettes()[a.theme].Name, Window: a.panes.Window.String(),
		Phase: a.panes.Phase.String(), Sort: l.By.String(), Reverse: l.Down,
	}
}
