package ui

import (
	"errors"
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// ErrPanic is returned when the screen broke; the terminal has been restored.
var ErrPanic = errors.New("panic")

// guard stands between the terminal library and a screen, and ends it in order when it panics: the library restores the
// terminal then, too, but leaves the goroutine that reads it behind.
type guard struct {
	screen tea.Model
	fail   func(error) // ends the screen
}

// Init implements tea.Model.
func (g *guard) Init() tea.Cmd { return g.screen.Init() }

// Update implements tea.Model.
func (g *guard) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer g.recovered()
	same = g
	_, cmd = g.screen.Update(msg)
	return same, cmd
}

// View implements tea.Model.
func (g *guard) View() tea.View {
	defer g.recovered()
	return g.screen.View()
}

func (g *guard) recovered() {
	if p := recover(); p != nil {
		g.fail(fmt.Errorf("draw screen: %w: %v\n%s", ErrPanic, p, debug.Stack()))
	}
}
