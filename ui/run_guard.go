package ui

import (
	"errors"
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// ErrPanic reports that the screen panicked; the terminal has been restored.
var ErrPanic = errors.New("panic")

// guard wraps a screen and ends it in order when it panics: the terminal library would restore the terminal too, but
// leak the goroutine that reads it.
type guard struct {
	screen  tea.Model
	end     func(error) // ends the screen with an error
	out     *tty
	flusher flusher
	soon    bool // the terminal library may have something to write
}

// Init implements tea.Model.
func (g *guard) Init() tea.Cmd { return g.screen.Init() }

// Update implements tea.Model.
func (g *guard) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer g.recovered()
	same = g
	if _, tick := msg.(tickMsg); !tick {
		g.soon = true
	}
	if r, ok := msg.(tea.ModeReportMsg); ok && r.Mode == ansi.ModeSynchronizedOutput && r.Value == ansi.ModeReset { // known, and off
		g.out.synchronise()
	}
	_, cmd = g.screen.Update(msg)
	return same, cmd
}

// View implements tea.Model.
func (g *guard) View() tea.View {
	defer g.recovered()
	v := g.screen.View()
	p, ok := g.screen.(painter)
	if ok && v.Content != "" {
		g.out.paint(v.Content, p.Changes())
		v.Content = " "
	}
	if g.soon || !ok {
		g.soon = false
		g.flusher.drawn()
	}
	return v
}

func (g *guard) recovered() {
	if p := recover(); p != nil {
		g.end(fmt.Errorf("draw screen: %w: %v\n%s", ErrPanic, p, debug.Stack()))
	}
}
