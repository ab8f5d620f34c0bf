package exit

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/clean"
)

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

// ValueError returns why a text is not a value of a flag, without the texts of Go's parsers.
func ValueError(f *pflag.Flag, err error) error {
	description, ok := valueTypes[f.Value.Type()]
	switch {
	case !ok:
		return clean.Error(err)
	case errors.Is(err, strconv.ErrRange):
		return errors.New("out of range")
	}
	return errors.New("must be " + description)
}

// FlagError returns a usage error for an error of the flag parser.
func FlagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return Usage(err)
	}
	name, value, cause := invalid.GetFlag().Name, strconv.Quote(invalid.GetValue()), ValueError(invalid.GetFlag(), invalid.Unwrap())
	if strings.HasPrefix(cause.Error(), value) {
		return Usagef("--%s %w", name, cause)
	}
	return Usagef("--%s %s: %w", name, value, cause)
}
