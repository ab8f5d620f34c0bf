package ui

import (
	"errors"
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// ErrPanic reports that the screen panicked; the terminal has been restored.
var ErrPanic = errors.New("panic")

// guard wraps a screen and ends it in order when it panics: the terminal library would restore the terminal too, but
// leak the goroutine that reads it.
type guard struct {
	screen  tea.Model
	end     func(error) // ends the screen with an error
	flusher flusher
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
	v := g.screen.View()
	g.flusher.drawn()
	return v
}

func (g *guard) recovered() {
	if p := recover(); p != nil {
		g.end(fmt.Errorf("draw screen: %w: %v\n%s", ErrPanic, p, debug.Stack()))
	}
}
