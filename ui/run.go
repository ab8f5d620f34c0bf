package ui

import (
	"context"
	"errors"
	"fmt"
	"os"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/ui/terminal"
)

// flushRate is the minimum rate at which the terminal library writes a changed frame, per second, until the first frame
// was drawn; see flusher.
const flushRate = 10

// leaveScreen resets the terminal modes that the terminal library sets for a screen.
var leaveScreen = ansi.PopKittyKeyboard(1) + ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseAnyEvent + ansi.ResetModeMouseExtSgr + ansi.ResetModeFocusEvent +
	ansi.ResetModeBracketedPaste + ansi.ResetModeSynchronizedOutput + ansi.ResetModeUnicodeCore + ansi.ResetModifyOtherKeys + ansi.ResetStyle +
	ansi.ResetModeAltScreenSaveCursor + ansi.SetModeTextCursorEnable

// noticeMsg is a note for the user that no key triggered.
type noticeMsg string

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

// run runs one screen; sent, unless nil, counts the bytes that it writes.
func run(ctx context.Context, cfg Config, screen tea.Model, sent *throttle) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if cfg.Output == nil {
		cfg.Output = os.Stdout
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	out := &tty{File: cfg.Output, lost: stop, throttle: sent}
	opts := []tea.ProgramOption{
		tea.WithoutSignalHandler(), tea.WithFPS(max(frameRate(cfg.FPS), flushRate)),
		tea.WithColorProfile(cfg.Profile.Terminal()), tea.WithEnvironment(cfg.Environ),
		tea.WithOutput(out),
	}
	input := os.Stdin
	if cfg.Input != nil {
		opts = append(opts, tea.WithInput(cfg.Input))
		if file, ok := cfg.Input.(*os.File); ok {
			input = file
		}
	}
	defer terminal.Take(input, cfg.Output, leaveScreen)() // runs after the library has restored the terminal
	g := &guard{screen: screen, end: stop, out: out}
	program := tea.NewProgram(g, opts...)
	g.flusher.program = program
	defer g.flusher.stop()
	defer onSuspend(ctx, program, input)()
	// The program quits with ctx instead of being killed by it, so that the goroutine that reads the terminal ends too.
	defer context.AfterFunc(ctx, program.Quit)()
	_, err := program.Run()
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
