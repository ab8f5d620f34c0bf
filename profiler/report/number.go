package report

import (
	"iter"
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

// numbers yields the numbers of a struct that JSON has, by their names in it.
func numbers(of reflect.Value) iter.Seq2[string, *event.Reading] {
	return func(yield func(string, *event.Reading) bool) {
		for i := range of.NumField() {
			f := of.Type().Field(i)
			if f.Type != reflect.TypeFor[event.Reading]() {
				continue
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			n := of.Field(i).Addr().Interface().(*event.Reading)
			if options == "omitzero" && *n == (event.Reading{}) { // JSON omits it
				continue
			}
			if !yield(name, n) {
				return
			}
		}
	}
}

// explainNumbers sets Absent of a struct to the reasons of its absent numbers, and Origin, if it has it, to the origins
// of the others; nil without any.
func explainNumbers(p any) {
	var absent, origin map[string]string
	of := reflect.ValueOf(p).Elem()
	for name, n := range numbers(of) {
		words, word := &absent, n.Absence()
		if n.OK() {
			words, word = &origin, n.Origin.String()
		}
		if *words == nil {
			*words = make(map[string]string)
		}
		(*words)[name] = word
	}
	of.FieldByName("Absent").Set(reflect.ValueOf(absent))
	if f := of.FieldByName("Origin"); f.IsValid() {
		f.Set(reflect.ValueOf(origin))
	}
}

// restoreAbsences gives the absent numbers below v the reasons that explainNumbers found: those of the field Absent of their
// struct.
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
			if v.Type().Field(i).IsExported() {
				restoreAbsences(v.Field(i))
			}
		}
		for name, n := range numbers(v) {
			explain(n, reasons[name])
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
