package report

import (
	"reflect"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// nanos converts ns to s.
func nanos(ns int64) event.Reading { return event.DerivedValue(float64(ns) / 1e9) }

// optionalNumber returns v, or "not reported" if it is 0 or less.
func optionalNumber[T int | int64](v T) event.Reading {
	if v <= 0 {
		return event.Reading{}
	}
	return event.MeasuredValue(float64(v))
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
	return mapNumbers(v, func(n event.Reading) (string, bool) { return n.Absence(), !n.OK() })
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
			if n, ok := v.Field(i).Addr().Interface().(*event.Reading); ok {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				explain(n, reasons[name])
				continue
			}
			restoreAbsences(v.Field(i))
		}
	}
}

// explain sets the reason of an absent number, or the origin of another.
func explain(n *event.Reading, word string) {
	for origin := range event.Derived + 1 {
		if origin.String() == word && (origin >= event.Measured) == n.OK() {
			n.Origin = origin
		}
	}
}

// origins returns the origins of the numbers of a struct, by JSON name; nil if it has no numbers.
func origins(v any) map[string]string {
	return mapNumbers(v, func(n event.Reading) (string, bool) { return n.Origin.String(), n.OK() })
}

// mapNumbers returns the words of the numbers of a struct, by JSON name; it skips numbers without a word. nil if no
// number has one.
func mapNumbers(v any, words func(event.Reading) (string, bool)) map[string]string {
	var out map[string]string
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if !s.Type().Field(i).IsExported() {
			continue
		}
		n, ok := s.Field(i).Interface().(event.Reading)
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
