package report

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
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

// restoreAbsences gives the absent numbers below v the reasons that absences returned for them: those of the field Absent
// of their struct.
func restoreAbsences(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			restoreAbsences(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind == reflect.Struct || kind == reflect.Pointer {
			for i := range v.Len() {
				restoreAbsences(v.Index(i))
			}
		}
	case reflect.Struct:
		var reasons map[string]string
		if field := v.FieldByName("Absent"); field.IsValid() {
			reasons, _ = field.Interface().(map[string]string)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if n, ok := v.Field(i).Addr().Interface().(*Number); ok {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				n.explain(reasons[name])
				continue
			}
			restoreAbsences(v.Field(i))
		}
	}
}

// explain sets the reason of an absent number.
func (n *Number) explain(reason string) {
	for origin := event.NotReported; origin < event.Measured && !n.OK(); origin++ {
		if origin.String() == reason {
			*n = Number(event.Absent(origin))
			return
		}
	}
}

// originsOf returns the origins of the numbers of v; nil for an engine whose numbers are all llmtop's own.
func originsOf(s *store.Snapshot, v any) map[string]string {
	if !s.Polled() {
		return nil
	}
	return origins(v)
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
