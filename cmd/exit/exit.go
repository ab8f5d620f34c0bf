// Package exit says how the program ends: errors, their exit codes, and signals.
package exit

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes of the program.
const (
	CodeOK          = 0
	CodeFailed      = 1   // a request failed, no engine was reached, or a report could not be written
	CodeUsage       = 2   // the input of the user is unusable; one line says why and what to do
	CodeNotCompared = 64  // compare could not compare; its other codes are outcomes: 0 better or no worse, 1 worse, 2 inconclusive
	CodeInterrupted = 130 // ended by SIGINT before it was done, as shells report it
)

// usageError is an error of the user, printed in one line, with exit code CodeUsage.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Usage returns err as an error of the user.
func Usage(err error) error { return usageError{err} }

// Usagef returns a formatted error of the user.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// IsUsage reports whether err is an error of the user.
func IsUsage(err error) bool {
	_, ok := errors.AsType[usageError](err)
	return ok
}

// outcome ends the program with an exit code.
type outcome struct {
	code int
	err  error
}

func (e outcome) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e outcome) Unwrap() error { return e.err }

// Outcome returns an error that ends the program with an exit code. With a nil err nothing is printed.
func Outcome(code int, err error) error { return outcome{code, err} }

// IsOutcome reports whether err is an Outcome.
func IsOutcome(err error) bool {
	_, ok := errors.AsType[outcome](err)
	return ok
}

// Causes of the end of a command by a signal.
var (
	// ErrInterrupted ends a run without a screen after its partial report.
	ErrInterrupted = errors.New("interrupted: the report covers the time until then")
	// ErrClosed ends a screen. It is not a failure.
	ErrClosed = errors.New("closed by a signal")
)

// IgnoreClosed returns err, nil if a signal closed the screen.
func IgnoreClosed(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// InterruptCause returns ErrInterrupted if a signal ended ctx, otherwise err.
func InterruptCause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrInterrupted) {
		return ErrInterrupted
	}
	return err
}

// Code returns the exit code for the error of a command.
func Code(err error) int {
	result, ok := errors.AsType[outcome](err)
	switch {
	case err == nil:
		return CodeOK
	case ok:
		return result.code
	case IsUsage(err):
		return CodeUsage
	case errors.Is(err, ErrInterrupted):
		return CodeInterrupted
	}
	return CodeFailed
}
