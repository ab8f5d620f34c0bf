package cmd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Exit codes of the program.
const (
	exitOK          = 0
	exitFailed      = 1   // a request failed, or a report could not be written
	exitUsage       = 2   // the input of the user is unusable; one line says why and what to do
	exitNotCompared = 64  // compare could not compare; its other codes are outcomes: 0 not worse, 1 regressed, 2 no verdict
	exitInterrupted = 130 // ended by SIGINT before it was done, as shells report it
)

// usageError is an error of the user, printed in one line, with exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef returns a formatted usageError.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// valueTypes describes the values of flags by the type of the flag, for errors.
var valueTypes = map[string]string{
	"bool":           "true or false",
	"duration":       "a duration like 500ms, 10s or 2m",
	"float64":        "a number",
	"float64Slice":   "numbers separated by commas",
	"int":            "a whole number",
	"intSlice":       "whole numbers separated by commas",
	"stringToString": "NAME=VALUE pairs separated by commas",
	"uint64":         "a whole number of at least 0",
}

// valueError returns why a text is not a value of a flag, without the texts of Go's parsers.
func valueError(f *pflag.Flag, err error) error {
	description, ok := valueTypes[f.Value.Type()]
	switch {
	case !ok:
		return clean.Error(err)
	case errors.Is(err, strconv.ErrRange):
		return errors.New("out of range")
	}
	return errors.New("must be " + description)
}

// flagError makes a usageError of an error of the flag parser.
func flagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usageError{err}
	}
	name, value, cause := invalid.GetFlag().Name, strconv.Quote(invalid.GetValue()), valueError(invalid.GetFlag(), invalid.Unwrap())
	if strings.HasPrefix(cause.Error(), value) {
		return usagef("--%s %w", name, cause)
	}
	return usagef("--%s %s: %w", name, value, cause)
}

// outcomeError ends compare with an exit code. With a nil err nothing is printed.
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

// errInterrupted ends a headless run that a signal stopped after its partial report.
var errInterrupted = errors.New("interrupted: the report covers the time until then")

// exitCode returns the exit code for the error of a command.
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
