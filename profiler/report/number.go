package report

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Number is a reading in a report: null in JSON if it is absent or not finite.
type Number event.Reading

// OK reports whether the number is present.
func (n Number) OK() bool { return event.Reading(n).OK() }

// MarshalJSON writes the number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.OK() {
		return []byte("null"), nil
	}
	return json.Marshal(n.V)
}

// absence returns the reason why the number is absent.
func (n Number) absence() string { return event.Reading(n).Absence() }

// nanos converts ns to s.
func nanos(ns int64) Number { return Number(event.DerivedValue(float64(ns) / 1e9)) }

// optionalNumber returns v, or "not reported" if it is 0 or less.
func optionalNumber[T int | int64](v T) Number {
	if v <= 0 {
		return Number{}
	}
	return Number(event.MeasuredValue(float64(v)))
}

// optionalText returns s, or nil if it is empty.
func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// absences returns the reasons of the absent numbers of a struct, by JSON name; nil if no number is absent.
func absences(v any) map[string]string {
	return mapNumbers(v, func(n Number) (string, bool) { return n.absence(), !n.OK() })
}

// origins returns the origins of the numbers of a struct, by JSON name; nil if it has no numbers.
func origins(v any) map[string]string {
	return mapNumbers(v, func(n Number) (string, bool) { return n.Origin.String(), n.OK() })
}

// mapNumbers returns the words of the numbers of a struct, by JSON name; it skips numbers without a word. nil if no
// number has one.
func mapNumbers(v any, words func(Number) (string, bool)) map[string]string {
	var out map[string]string
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if !s.Type().Field(i).IsExported() {
			continue
		}
		n, ok := s.Field(i).Interface().(Number)
		if !ok {
			continue
		}
		if word, ok := words(n); ok {
			if out == nil {
				out = make(map[string]string)
			}
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			out[name] = word
		}
	}
	return out
}
