package report

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Number is a reading in a report: null in JSON where it is absent, and where it is no number at all.
type Number event.Reading

// OK reports whether there is a number.
func (n Number) OK() bool { return event.Reading(n).OK() }

// MarshalJSON writes the number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.OK() {
		return []byte("null"), nil
	}
	return json.Marshal(n.V)
}

// why is the word for the absence of a number.
func (n Number) why() string { return event.Reading(n).Why() }

// nanos is a time in s.
func nanos(ns int64) Number { return Number(event.From(float64(ns) / 1e9)) }

// known is a number of which 0 means that nobody told it.
func known[T int | int64](v T) Number {
	if v <= 0 {
		return Number{}
	}
	return Number(event.Of(float64(v)))
}

// text is a string of which "" means that nobody told it: null.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// absences lists which numbers of a struct are absent, by their names in JSON, each with its reason; nil if none is.
func absences(v any) map[string]string {
	return described(v, func(n Number) (string, bool) { return n.why(), !n.OK() })
}

// origins lists whose word the numbers of a struct are, by their names in JSON; nil if there are none.
func origins(v any) map[string]string {
	return described(v, func(n Number) (string, bool) { return n.Origin.String(), n.OK() })
}

// described are words of the numbers of a struct that have some, by their names in JSON; nil if none has.
func described(v any, words func(Number) (string, bool)) map[string]string {
	var out map[string]string
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if !s.Type().Field(i).IsExported() {
			continue
		}
		n, is := s.Field(i).Interface().(Number)
		if !is {
			continue
		}
		if word, some := words(n); some {
			if out == nil {
				out = make(map[string]string)
			}
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			out[name] = word
		}
	}
	return out
}
