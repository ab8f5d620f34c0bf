package jinja

import "strings"

// tests are the tests after "is": number of arguments and implementation.
var tests = map[string]struct {
	takes int
	holds func(m *meter, v any, a []any) bool
}{
	"defined":   {0, func(_ *meter, v any, _ []any) bool { _, is := v.(undefined); return !is }},
	"undefined": {0, kindOf[undefined]},
	"none":      {0, func(_ *meter, v any, _ []any) bool { return v == nil }},
	"string":    {0, kindOf[string]},
	"boolean":   {0, kindOf[bool]},
	"integer":   {0, kindOf[int64]},
	"float":     {0, kindOf[float64]},
	"mapping":   {0, kindOf[*dict]},
	"callable":  {0, kindOf[*function]},
	"number":    {0, func(_ *meter, v any, _ []any) bool { _, is := number(v); return is }},
	"sequence":  {0, isSequence},
	"iterable":  {0, isSequence},
	"true":      {0, func(_ *meter, v any, _ []any) bool { return v == true }},
	"false":     {0, func(_ *meter, v any, _ []any) bool { return v == false }},
	"even":      {0, func(m *meter, v any, _ []any) bool { return integers("%", int64(intOf(v)), 2) == int64(0) }},
	"odd":       {0, func(m *meter, v any, _ []any) bool { return integers("%", int64(intOf(v)), 2) == int64(1) }},
	"divisibleby": {1, func(m *meter, v any, a []any) bool {
		return integers("%", int64(intOf(v)), int64(intOf(a[0]))) == int64(0)
	}},
	"in":     {1, func(m *meter, v any, a []any) bool { return contains(m, a[0], v) }},
	"sameas": {1, func(_ *meter, v any, a []any) bool { return v == a[0] }},
	"lower":  {0, func(m *meter, v any, _ []any) bool { return hasCase(str(m, v), strings.ToLower) }},
	"upper":  {0, func(m *meter, v any, _ []any) bool { return hasCase(str(m, v), strings.ToUpper) }},

	"eq": {1, comparison("==")}, "equalto": {1, comparison("==")}, "==": {1, comparison("==")},
	"ne": {1, comparison("!=")}, "!=": {1, comparison("!=")},
	"lt": {1, comparison("<")}, "lessthan": {1, comparison("<")}, "<": {1, comparison("<")},
	"le": {1, comparison("<=")}, "<=": {1, comparison("<=")},
	"gt": {1, comparison(">")}, "greaterthan": {1, comparison(">")}, ">": {1, comparison(">")},
	"ge": {1, comparison(">=")}, ">=": {1, comparison(">=")},
}

func kindOf[T any](_ *meter, v any, _ []any) bool {
	_, is := v.(T)
	return is
}

// isSequence reports whether a value has elements; as in jinja2, undefined counts.
func isSequence(_ *meter, v any, _ []any) bool {
	switch v.(type) {
	case string, *list, *dict, undefined:
		return true
	}
	return false
}

// hasCase reports whether a text has letters, all in the case that as converts to.
func hasCase(s string, as func(string) string) bool {
	return as(s) == s && strings.ToLower(s) != strings.ToUpper(s)
}

func comparison(op string) func(*meter, any, []any) bool {
	return func(m *meter, v any, a []any) bool { return holds(m, op, v, a[0]) }
}
