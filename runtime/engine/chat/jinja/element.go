package jinja

import (
	"fmt"
	"unicode/utf8"
)

// Access to values: attributes, elements, slices.

// attribute returns x.name: the method, otherwise the entry of a dict.
func attribute(m *meter, x any, name string) any {
	defined(x)
	if f := method(x, name); f != nil {
		return f
	}
	switch x := x.(type) {
	case *dict:
		if v, ok := x.get(name); ok {
			return v
		}
	case *namespace:
		if v, ok := x.vars[name]; ok {
			return v
		}
	case *loopState:
		if v, ok := x.attribute(name); ok {
			return v
		}
	}
	return undefined{fmt.Sprintf("a %s has no attribute %q", typeName(x), name)}
}

// item returns x[key]: the entry or element, otherwise the attribute.
func item(m *meter, x, key any) any {
	defined(x)
	switch x := x.(type) {
	case *dict:
		if !hashable(key) {
			break
		}
		if v, ok := x.get(key); ok {
			return v
		}
	case *list:
		if i, ok := place(key, len(x.items)); ok {
			return x.items[i]
		}
	case string:
		if _, isInt := whole(key).(int64); !isInt {
			break
		}
		if i, ok := place(key, length(m, x)); ok {
			m.work(utf8.UTFMax * len(x))
			return string([]rune(x)[i])
		}
	}
	if name, ok := key.(string); ok {
		return attribute(m, x, name)
	}
	return undefined{fmt.Sprintf("a %s has no element %s", typeName(x), repr(m, key))}
}

// place returns the position of an index in n elements; a negative index counts from the end.
func place(key any, n int) (int, bool) {
	i, ok := whole(key).(int64)
	if i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

func (l *loopState) attribute(name string) (any, bool) {
	n := len(l.items)
	number := func(i int) (any, bool) { return int64(i), true }
	neighbour := func(at int) (any, bool) {
		if at < 0 || at >= n {
			return undefined{"there is no item there"}, true
		}
		return l.items[at], true
	}
	switch name {
	case "index":
		return number(l.at + 1)
	case "index0":
		return number(l.at)
	case "revindex":
		return number(n - l.at)
	case "revindex0":
		return number(n - l.at - 1)
	case "length":
		return number(n)
	case "depth":
		return number(l.depth + 1)
	case "depth0":
		return number(l.depth)
	case "first":
		return l.at == 0, true
	case "last":
		return l.at == n-1, true
	case "previtem":
		return neighbour(l.at - 1)
	case "nextitem":
		return neighbour(l.at + 1)
	case "cycle":
		return &function{"cycle", func(_ *machine, a args) any {
			if len(a.positional) == 0 {
				fail("cycle takes at least one value")
			}
			return a.positional[l.at%len(a.positional)]
		}}, true
	}
	return nil, false
}

func (e *sliceExpr) eval(m *machine, s *scope) any {
	x := defined(m.eval(e.x, s))
	bound := func(b expr) *int {
		if b == nil {
			return nil
		}
		v := m.eval(b, s)
		if v == nil {
			return nil
		}
		i := intOf(v)
		return &i
	}
	low, high, step := bound(e.low), bound(e.high), bound(e.step)
	switch x := x.(type) {
	case *list:
		at := sliceIndexes(len(x.items), low, high, step)
		m.work(itemWork * len(at))
		items := make([]any, len(at))
		for i, from := range at {
			items[i] = x.items[from]
		}
		return &list{items, x.tuple}
	case string:
		m.work(utf8.UTFMax * len(x))
		runes := []rune(x)
		at := sliceIndexes(len(runes), low, high, step)
		picked := make([]rune, len(at))
		for i, from := range at {
			picked[i] = runes[from]
		}
		return string(picked)
	}
	fail("a %s cannot be sliced", typeName(x))
	return nil
}

// sliceIndexes returns the positions in n elements that a Python slice selects, in order.
func sliceIndexes(n int, low, high, step *int) []int {
	by := 1
	if step != nil {
		by = *step
	}
	if by == 0 {
		fail("the step of a slice is 0")
	}
	from, to, least, most := 0, n, 0, n
	if by < 0 {
		from, to, least, most = n-1, -1, -1, n-1
	}
	clip := func(i *int, otherwise int) int {
		if i == nil {
			return otherwise
		}
		at := *i
		if at < 0 {
			at += n
		}
		return max(least, min(at, most))
	}
	from, to = clip(low, from), clip(high, to)
	by = max(-n-1, min(by, n+1)) // selects the same positions, without overflow
	var at []int
	for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
		at = append(at, i)
	}
	return at
}
