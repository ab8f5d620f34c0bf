package jinja

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// A value is nil for none, or one of bool, int64, float64, string, *list, *dict, *namespace, *loopState, *function,
// undefined.

// undefined is the value of an undefined name. Most uses of it fail with why as the message.
type undefined struct{ why string }

// list is a list or a tuple. It is immutable after creation.
type list struct {
	items []any
	tuple bool
}

// dict keeps its entries in order. It is immutable after creation.
type dict struct {
	keys, values []any
	at           map[any]int // index by key
}

func newDict() *dict { return &dict{at: map[any]int{}} }

// put adds an entry to a dict during its creation, or replaces it.
func (d *dict) put(m *meter, key, value any) {
	m.work(itemWork)
	k := hashed(key)
	if i, ok := d.at[k]; ok {
		d.values[i] = value
		return
	}
	d.at[k] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

func (d *dict) get(key any) (any, bool) {
	i, ok := d.at[hashed(key)]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// hashable reports whether a value can be a key.
func hashable(key any) bool {
	switch key.(type) {
	case nil, bool, int64, float64, string, undefined:
		return true
	}
	return false
}

// hashed returns a key such that equal keys are identical: 1, 1.0 and true are equal.
func hashed(key any) any {
	if !hashable(key) {
		fail("a %s cannot be a key of a dict", typeName(key))
	}
	switch k := whole(key).(type) {
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k)
		}
		return k
	case undefined:
		return undefined{}
	default:
		return k
	}
}

// namespace is an object with attributes that a template may change.
type namespace struct{ vars map[string]any }

// function is a callable value.
type function struct {
	name string
	call func(m *machine, a args) any
}

// loopState is the variable loop.
type loopState struct {
	items []any
	at    int
	depth int
	again func(m *machine, over any) string // of a recursive loop
}

// typeName returns Python's name of a value's type.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *dict:
		return "dict"
	case undefined:
		return "undefined"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*jinja.")
}

// truth reports whether a value counts as true.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// length returns the length of a value, as the filter length does.
func length(m *meter, v any) int {
	switch v := v.(type) {
	case string:
		m.work(len(v))
		return utf8.RuneCountInString(v)
	case *list:
		return len(v.items)
	case *dict:
		return len(v.keys)
	case undefined:
		return 0
	}
	fail("%s has no length", typeName(v))
	return 0
}

// iterate returns the elements of a value. The caller must not change the result.
func iterate(m *meter, v any) []any {
	switch v := v.(type) {
	case *list:
		return v.items
	case *dict:
		return v.keys
	case undefined:
		return nil
	case string:
		m.work(itemWork * len(v))
		items := make([]any, 0, len(v))
		for _, r := range v {
			items = append(items, string(r))
		}
		return items
	}
	fail("%s cannot be iterated over", typeName(v))
	return nil
}

// defined fails if a value is undefined.
func defined(v any) any {
	if u, ok := v.(undefined); ok {
		fail("%s", u.why)
	}
	return v
}
