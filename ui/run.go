package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// ErrPanic reports that the screen panicked; the terminal has been restored.
var ErrPanic = errors.New("panic")

// appMsg changes the screen on its goroutine, such as to show a note that no key triggered.
type appMsg func(*app)

// loopMsg changes the terminal. What it returns is the message for the screen.
type loopMsg func(*loop) tea.Msg

// copyMsg is text for the clipboard of the terminal.
type copyMsg string

// Run shows the screen until the user quits (nil), ctx ends (its cause), the terminal is lost, or the screen panics. It
// restores the terminal in every case. The caller handles signals: it ends ctx for those that end the program.
func Run(ctx context.Context, cfg Config) error {
	a := newApp(cfg)
	err := run(ctx, a.cfg, a, &a.throttle)
	if cfg.Remember != nil {
		cfg.Remember(a.choices())
	}
	return err
}

// screen is what run shows.
type screen interface {
	// Init returns the first command.
	Init() tea.Cmd
	// Update handles a message. It never blocks.
	Update(tea.Msg) tea.Cmd
	// Draw returns a new frame, valid until the next call of Update; nil: the frame before is still right.
	Draw() (*grid.Grid, *theme.Skin)
	// Mouse returns the mode of the mouse.
	Mouse() tea.MouseMode
}

// run runs one screen; sent, unless nil, counts the bytes that it writes. Bubble Tea is its loop of messages and reads
// the terminal; the display does everything else with it.
func run(ctx context.Context, cfg Config, s screen, sent *throttle) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if cfg.Output == nil {
		cfg.Output = os.Stdout
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Input == nil {
		cfg.Input = os.Stdin
	}
	d := &display{in: cfg.Input, out: cfg.Output, queries: cfg.terminalQueries(), lost: stop, sent: sent}
	size := d.size()
	l := &loop{screen: s, display: d, end: stop}
	l.program = tea.NewProgram(l, tea.WithoutRenderer(), tea.WithoutSignalHandler(),
		tea.WithFPS(1), // of a ticker that the library has even without a renderer
		tea.WithInput(cfg.Input), tea.WithOutput(io.Discard), tea.WithEnvironment(cfg.Environ),
		tea.WithColorProfile(cfg.Profile.Terminal()), tea.WithWindowSize(size.Width, size.Height))
	d.enter()
	defer d.leave()
	defer onSignals(ctx, l.program)()
	// The program quits with ctx instead of being killed by it, so that the goroutine that reads the terminal ends too.
	defer context.AfterFunc(ctx, l.program.Quit)()
	_, err := l.program.Run()
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("draw screen: %w", ErrPanic)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("run screen: %w", err)
	}
	return nil
}

// loop runs a screen on a display, and ends it in order when it panics: the terminal library would leak the goroutine
// that reads the terminal.
type loop struct {
	screen  screen
	display *display
	program *tea.Program
	end     context.CancelCauseFunc
}

// Init implements tea.Model.
func (l *loop) Init() tea.Cmd { return l.guarded(l.screen.Init()) }

// View implements tea.Model. Frames do not pass through the library.
func (l *loop) View() tea.View { return tea.View{} }

// Update implements tea.Model.
func (l *loop) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer l.recovered()
	same = l
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		l.display.skin = nil // some terminals move the text
		msg = l.display.size()
	case tea.ModeReportMsg:
		l.display.answer(m)
	case copyMsg:
		l.display.write([]byte(ansi.SetSystemClipboard(string(m))))
	case loopMsg:
		msg = m(l)
	}
	cmd = l.screen.Update(msg)
	if frame, skin := l.screen.Draw(); frame != nil {
		l.display.paint(frame, skin, l.screen.Mouse())
	}
	return same, l.guarded(cmd)
}

// continued takes the terminal again after a stop that the process could not see.
func (l *loop) continued() tea.Msg {
	l.display.retake()
	return tea.ResumeMsg{}
}

// suspend gives the terminal back while stopped runs, which returns when the process goes on.
func (l *loop) suspend(stopped func()) tea.Msg {
	_ = l.program.ReleaseTerminal() // of its reader
	l.display.leave()
	stopped()
	l.display.enter()
	if err := l.program.RestoreTerminal(); err != nil {
		l.end(fmt.Errorf("read terminal: %w", err))
	}
	l.screen.Update(l.display.size()) // it may have changed meanwhile
	return tea.ResumeMsg{}
}

// guarded makes a command end the screen when it panics.
func (l *loop) guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() tea.Msg {
		defer l.recovered()
		return cmd()
	}
}

func (l *loop) recovered() {
	if p := recover(); p != nil {
		l.end(fmt.Errorf("draw screen: %w: %v\n%s", ErrPanic, p, debug.Stack()))
	}
}
