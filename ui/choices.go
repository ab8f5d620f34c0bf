package ui

import (
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/table"
)

// Choices are what the user has chosen on the screen, to be remembered, by the names that the screen shows. What is "" or unknown is left
// as it is by default. The view is none of them: the screen always begins with the overview.
type Choices struct {
	Theme   string `json:"theme,omitempty"`
	Window  string `json:"window,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Sort    string `json:"sort,omitempty"` // column of the table of requests
	Reverse bool   `json:"reverse,omitempty"`
}

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
}

// choices are those of now.
func (a *app) choices() Choices {
	l := a.requests.shown.List
	return Choices{
		Theme: theme.Palettes()[a.theme].Name, Window: a.panes.Window.String(),
		Phase: a.panes.Phase.String(), Sort: l.By.String(), Reverse: l.Down,
	}
}
