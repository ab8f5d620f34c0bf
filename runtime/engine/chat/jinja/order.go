package jinja

import (
	"sort"
	"strings"
)

// equal compares as Python's == does.
func equal(m *meter, a, b any) bool {
	m.work(stepWork)
	m.down()
	defer m.up()
	if x, y, ok := numbers(a, b); ok {
		return x == y
	}
	switch a := a.(type) {
	case *list:
		b, ok := b.(*list)
		if !ok || len(a.items) != len(b.items) || a.tuple != b.tuple {
			return false
		}
		for i := range a.items {
			if !equal(m, a.items[i], b.items[i]) {
				return false
			}
		}
		return true
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for i, k := range a.keys {
			if v, ok := b.get(k); !ok || !equal(m, a.values[i], v) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		s, ok := b.(string)
		m.work(min(len(a), len(s)))
		return ok && a == s
	}
	return a == b
}

// numbers converts two values to numbers, if possible.
func numbers(a, b any) (x, y float64, ok bool) {
	x, ok = number(a)
	if !ok {
		return 0, 0, false
	}
	y, ok = number(b)
	return x, y, ok
}

// number converts a value to a number; true and false are 1 and 0.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// compare orders two values as Python's < and > do: negative, 0 or positive.
func compare(m *meter, a, b any) int {
	m.work(stepWork)
	m.down()
	defer m.up()
	if x, y, ok := numbers(a, b); ok {
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			m.work(min(len(a), len(b)))
			return strings.Compare(a, b)
		}
	case *list:
		b, ok := b.(*list)
		if !ok {
			break
		}
		for i := range min(len(a.items), len(b.items)) {
			if c := compare(m, a.items[i], b.items[i]); c != 0 {
				return c
			}
		}
		return len(a.items) - len(b.items)
	}
	defined(a)
	defined(b)
	fail("%s and %s cannot be compared", typeName(a), typeName(b))
	return 0
}

// sorted returns a list in order of a key.
func sorted(m *meter, items []any, key func(any) any, reverse bool) []any {
	m.work(itemWork * len(items))
	keys, order := make([]any, len(items)), make([]int, len(items))
	for i, item := range items {
		keys[i], order[i] = key(item), i
	}
	sort.SliceStable(order, func(i, j int) bool {
		if reverse {
			i, j = j, i
		}
		return compare(m, keys[order[i]], keys[order[j]]) < 0
	})
	out := make([]any, len(items))
	for i, at := range order {
		out[i] = items[at]
	}
	return out
}
