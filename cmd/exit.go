package cmd

import (
	"errors"
	"fmt"
)

// Exit codes of the program.
const (
	exitOK          = 0
	exitFailed      = 1   // the run itself failed: a request failed, a report could not be written
	exitUsage       = 2   // the user's input cannot be used; one line says why and what to do
	exitNotCompared = 64  // compare could not compare; its other codes are its outcomes: 0 no worse, 1 regressed, 2 no verdict
	exitInterrupted = 130 // ended by SIGINT before it was done, as shells report it
)

// usageError is a mistake of the user's: told in one line, exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// outcomeError ends compare with a code of its own. One without words has nothing to add to what was written.
type outcomeError struct {
	code int
	err  error
}

func (e outcomeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e outcomeError) Unwrap() error { return e.err }

// errInterrupted ends a headless run that was stopped by a signal after it has reported what it has.
var errInterrupted = errors.New("interrupted: the report covers what was measured until then")

// exitCode maps the error that a command ended with to the program's exit code.
func exitCode(err error) int {
	var (
		usage   usageError
		outcome outcomeError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &outcome):
		return outcome.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	return exitFailed
}
