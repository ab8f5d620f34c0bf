package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// Filters of lists and dicts.

// firstOrLast returns a filter for the first or the last element.
func firstOrLast(first bool) func(*machine, any, args) any {
	return func(m *machine, v any, _ args) any {
		all := iterate(m.meter, v)
		switch {
		case len(all) == 0:
			return undefined{"there is no item, the sequence is empty"}
		case first:
			return all[0]
		}
		return all[len(all)-1]
	}
}

func items(m *machine, v any, _ args) any {
	switch v := v.(type) {
	case *dict:
		return entries(m.meter, v)
	case undefined:
		return &list{}
	}
	fail("items takes a dict, not a %s", typeName(v))
	return nil
}

func reversed(m *machine, v any, _ args) any {
	if s, ok := v.(string); ok {
		m.work(5 * len(s))
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	all := slices.Clone(iterate(m.meter, v))
	m.work(itemWork * len(all))
	slices.Reverse(all)
	return &list{items: all}
}

// getter returns a function that reads an attribute of a value: a name, a number, or a dotted path.
func getter(m *meter, path any) func(any) any {
	if path == (missing{}) || path == nil {
		return func(v any) any { return v }
	}
	var keys []any
	if s, ok := path.(string); ok {
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil {
				keys = append(keys, n)
				continue
			}
			keys = append(keys, part)
		}
	} else {
		keys = []any{int64(intOf(path))}
	}
	return func(v any) any {
		for _, k := range keys {
			v = item(m, v, k)
		}
		return v
	}
}

// folded converts a sort key to lower case.
func folded(m *meter, v any) any {
	if s, ok := v.(string); ok {
		m.work(len(s))
		return strings.ToLower(s)
	}
	return v
}

func joinedItems(m *machine, v any, a args) any {
	given := a.bind("join", 0, "d", "attribute")
	sep := ""
	if given[0] != (missing{}) {
		sep = str(m.meter, given[0])
	}
	get := getter(m.meter, given[1])
	return join(m.meter, iterate(m.meter, v), sep, func(m *meter, item any) string { return str(m, get(item)) })
}

func sortedItems(m *machine, v any, a args) any {
	given := a.bind("sort", 0, "reverse", "case_sensitive", "attribute")
	get, exact := getter(m.meter, given[2]), given[1] != (missing{}) && truth(given[1])
	key := func(item any) any {
		if exact {
			return get(item)
		}
		return folded(m.meter, get(item))
	}
	return &list{items: sorted(m.meter, iterate(m.meter, v), key, given[0] != (missing{}) && truth(given[0]))}
}

func dictSorted(m *machine, v any, a args) any {
	given := a.bind("dictsort", 0, "case_sensitive", "by", "reverse")
	d, ok := defined(v).(*dict)
	if !ok {
		fail("dictsort takes a dict, not a %s", typeName(v))
	}
	at, exact := 0, given[0] != (missing{}) && truth(given[0])
	if given[1] == "value" {
		at = 1
	}
	key := func(pair any) any {
		k := pair.(*list).items[at]
		if exact {
			return k
		}
		return folded(m.meter, k)
	}
	return &list{items: sorted(m.meter, entries(m.meter, d).items, key, given[2] != (missing{}) && truth(given[2]))}
}

func unique(m *machine, v any, a args) any {
	given := a.bind("unique", 0, "case_sensitive", "attribute")
	get, exact := getter(m.meter, given[1]), given[0] != (missing{}) && truth(given[0])
	seen, out := newDict(), &list{}
	for _, item := range iterate(m.meter, v) {
		k := get(item)
		if !exact {
			k = folded(m.meter, k)
		}
		if _, found := seen.get(k); found {
			continue
		}
		seen.put(m.meter, k, nil)
		out.items = append(out.items, item)
	}
	return out
}

// extreme returns a filter for the largest (sign 1) or the smallest element.
func extreme(sign int) func(*machine, any, args) any {
	return func(m *machine, v any, a args) any {
		given := a.bind("the filter", 0, "case_sensitive", "attribute")
		get := getter(m.meter, given[1])
		var best any = undefined{"there is no item, the sequence is empty"}
		for i, item := range iterate(m.meter, v) {
			if i == 0 || sign*compare(m.meter, folded(m.meter, get(item)), folded(m.meter, get(best))) > 0 {
				best = item
			}
		}
		return best
	}
}

func sum(m *machine, v any, a args) any {
	given := a.bind("sum", 0, "attribute", "start")
	get := getter(m.meter, given[0])
	var total any = int64(0)
	if given[1] != (missing{}) {
		total = given[1]
	}
	for _, item := range iterate(m.meter, v) {
		total = m.eval(&arithExpr{"+", &literal{total}, &literal{get(item)}}, nil)
	}
	return total
}

// mapped applies a filter to each element, or reads an attribute of each.
func mapped(m *machine, v any, a args) any {
	if !truth(v) { // as in jinja2, None and other values that are false have no elements
		return &list{}
	}
	apply := func(item any) any {
		return m.filter(text(m.meter, a.positional[0]), item, args{a.positional[1:], a.names, a.named})
	}
	if path, ok := a.named["attribute"]; ok {
		get := getter(m.meter, path)
		otherwise, has := a.named["default"]
		apply = func(item any) any {
			got := get(item)
			if _, isUndefined := got.(undefined); isUndefined && has {
				return otherwise
			}
			return got
		}
	} else if len(a.positional) == 0 {
		fail("map takes the name of a filter or an attribute")
	}
	out := &list{}
	for _, item := range iterate(m.meter, v) {
		m.work(itemWork)
		out.items = append(out.items, apply(item))
	}
	return out
}

// chosenItems returns a filter that keeps the elements, or their attributes, for which a test has the result keep.
func chosenItems(keep, attribute bool) func(*machine, any, args) any {
	return func(m *machine, v any, a args) any {
		if !truth(v) {
			return &list{}
		}
		get, rest := getter(m.meter, nil), a.positional
		if attribute {
			if len(rest) == 0 {
				fail("the filter takes the name of an attribute")
			}
			get, rest = getter(m.meter, rest[0]), rest[1:]
		}
		holds := truth
		if len(rest) > 0 {
			holds = func(v any) bool { return m.test(text(m.meter, rest[0]), v, rest[1:]) }
		}
		out := &list{}
		for _, item := range iterate(m.meter, v) {
			m.work(stepWork)
			if holds(get(item)) == keep {
				m.work(itemWork)
				out.items = append(out.items, item)
			}
		}
		return out
	}
}
