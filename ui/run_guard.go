package ui

import (
	"errors"
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// ErrPanic is returned when the screen broke; the terminal has been restored.
var ErrPanic = errors.New("panic")

// guard stands between the terminal library and the app, and ends the screen in order when the app panics: the library restores the
// terminal then, too, but leaves the goroutine that reads it behind.
type guard struct {
	app  *app
	fail func(error) // ends the screen
}

// Init implements tea.Model.
func (g *guard) Init() tea.Cmd { return g.app.Init() }

// Update implements tea.Model.
func (g *guard) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer g.recovered()
	same = g
	_, cmd = g.app.Update(msg)
	return same, cmd
}

// View implements tea.Model.
func (g *guard) View() tea.View {
	defer g.recovered()
	return g.app.View()
}

func (g *guard) recovered() {
	if p := recover(); p != nil {
		g.fail(fmt.Errorf("draw screen: %w: %v\n%s", ErrPanic, p, debug.Stack()))
	}
}
