package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// flushRate is how often a second, at least, the terminal is brought up to a changed frame: keys and the first frame should be seen soon.
// It is no higher because every look at whether there is a new frame wakes the program up, which costs more than all else that it
// does while nothing happens.
const flushRate = 10

// Run shows the screen until the user quits (nil), ctx ends (its cause), the terminal is lost, or the screen panics. The
// terminal is restored in every case. Signals are the caller's: end ctx for those that end the program.
func Run(ctx context.Context, cfg Config) error {
	a := newApp(cfg)
	err := run(ctx, a.cfg, a, &a.line)
	if cfg.Remember != nil {
		cfg.Remember(a.choices())
	}
	return err
}

// run runs one screen; sent, unless it is nil, counts what it costs.
func run(ctx context.Context, cfg Config, screen tea.Model, sent *line) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if cfg.Output == nil {
		cfg.Output = os.Stdout
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	opts := []tea.ProgramOption{
		tea.WithoutSignalHandler(), tea.WithFPS(max(frameRate(cfg.FPS), flushRate)),
		tea.WithColorProfile(cfg.Profile.Terminal()), tea.WithEnvironment(cfg.Environ),
		tea.WithOutput(&tty{File: cfg.Output, lost: stop, line: sent}),
	}
	if cfg.Input != nil {
		opts = append(opts, tea.WithInput(cfg.Input))
	}
	program := tea.NewProgram(&guard{screen: screen, fail: stop}, opts...)
	defer onSuspend(program)()
	// The program quits with ctx rather than being killed by it, so that the reader of the terminal has ended too.
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

// tty is the terminal; a write that fails means that it is gone, which ends the screen.
type tty struct {
	*os.File
	lost context.CancelCauseFunc
	line *line // nil: nobody counts
	once sync.Once
}

// Write writes to the terminal.
func (t *tty) Write(p []byte) (int, error) {
	n, err := t.File.Write(p)
	if t.line != nil {
		t.line.sent.Add(int64(n))
	}
	if err != nil {
		t.once.Do(func() { t.lost(fmt.Errorf("write to terminal: %w", err)) })
	}
	return n, err
}
