package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// methods are the methods of strings: number of required arguments, parameters, and implementation.
var methods = map[string]struct {
	required int
	params   []string
	call     func(m *meter, s string, a []any) any
}{
	"strip":      {0, []string{"chars"}, func(m *meter, s string, a []any) any { return trim(m, s, a[0], true, true) }},
	"lstrip":     {0, []string{"chars"}, func(m *meter, s string, a []any) any { return trim(m, s, a[0], true, false) }},
	"rstrip":     {0, []string{"chars"}, func(m *meter, s string, a []any) any { return trim(m, s, a[0], false, true) }},
	"upper":      {0, nil, func(_ *meter, s string, _ []any) any { return strings.ToUpper(s) }},
	"lower":      {0, nil, func(_ *meter, s string, _ []any) any { return strings.ToLower(s) }},
	"title":      {0, nil, func(_ *meter, s string, _ []any) any { return title(s, unicode.IsLetter) }},
	"capitalize": {0, nil, func(_ *meter, s string, _ []any) any { return capitalize(s) }},
	"isdigit":    {0, nil, every(unicode.IsDigit)},
	"isalpha":    {0, nil, every(unicode.IsLetter)},
	"isalnum":    {0, nil, every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })},
	"isspace":    {0, nil, every(unicode.IsSpace)},
	"splitlines": {0, nil, func(m *meter, s string, _ []any) any { return texts(m, lines(s)) }},
	"split": {0, []string{"sep", "maxsplit"}, func(m *meter, s string, a []any) any {
		return texts(m, split(m, s, a[0], limit(a[1]), false))
	}},
	"rsplit": {0, []string{"sep", "maxsplit"}, func(m *meter, s string, a []any) any {
		return texts(m, split(m, s, a[0], limit(a[1]), true))
	}},
	"partition": {1, []string{"sep"}, func(m *meter, s string, a []any) any {
		sep := separator(m, a[0])
		before, after, found := strings.Cut(s, sep)
		if !found {
			sep = ""
		}
		return &list{[]any{before, sep, after}, true}
	}},
	"rpartition": {1, []string{"sep"}, func(m *meter, s string, a []any) any {
		sep := separator(m, a[0])
		i := strings.LastIndex(s, sep)
		if i < 0 {
			return &list{[]any{"", "", s}, true}
		}
		return &list{[]any{s[:i], sep, s[i+len(sep):]}, true}
	}},
	"startswith": {1, []string{"prefix"}, func(m *meter, s string, a []any) any {
		return slices.ContainsFunc(either(m, a[0]), func(p string) bool { return strings.HasPrefix(s, p) })
	}},
	"endswith": {1, []string{"suffix"}, func(m *meter, s string, a []any) any {
		return slices.ContainsFunc(either(m, a[0]), func(p string) bool { return strings.HasSuffix(s, p) })
	}},
	"removeprefix": {1, []string{"prefix"}, func(m *meter, s string, a []any) any {
		return strings.TrimPrefix(s, text(m, a[0]))
	}},
	"removesuffix": {1, []string{"suffix"}, func(m *meter, s string, a []any) any {
		return strings.TrimSuffix(s, text(m, a[0]))
	}},
	"replace": {2, []string{"old", "new", "count"}, func(m *meter, s string, a []any) any {
		return replaced(m, s, text(m, a[0]), text(m, a[1]), limit(a[2]))
	}},
	"find": {1, []string{"sub"}, func(m *meter, s string, a []any) any {
		return characters(s, strings.Index(s, text(m, a[0])))
	}},
	"rfind": {1, []string{"sub"}, func(m *meter, s string, a []any) any {
		return characters(s, strings.LastIndex(s, text(m, a[0])))
	}},
	"index": {1, []string{"sub"}, func(m *meter, s string, a []any) any {
		i := strings.Index(s, text(m, a[0]))
		if i < 0 {
			fail("the text to find is not there")
		}
		return characters(s, i)
	}},
	"count": {1, []string{"sub"}, func(m *meter, s string, a []any) any { return int64(strings.Count(s, text(m, a[0]))) }},
	"join":  {1, []string{"items"}, func(m *meter, s string, a []any) any { return join(m, iterate(m, a[0]), s, text) }},
}

// method returns the method of a value, nil if it does not exist.
func method(x any, name string) any {
	switch x := x.(type) {
	case string:
		if name == "format" {
			return &function{name, func(m *machine, a args) any {
				f := formatter{meter: m.meter, args: a}
				return f.expand(x, false)
			}}
		}
		if method, ok := methods[name]; ok {
			return &function{name, func(m *machine, a args) any {
				m.work(len(x))
				return method.call(m.meter, x, a.bind(name, method.required, method.params...))
			}}
		}
	case *dict:
		return dictMethod(x, name)
	case *list:
		if name != "index" && name != "count" {
			return nil
		}
		return &function{name, func(m *machine, a args) any { return search(m.meter, x, name, a.bind(name, 1, "value")[0]) }}
	}
	return nil
}

func dictMethod(d *dict, name string) any {
	var call func(*meter) any
	switch name {
	case "items":
		call = func(m *meter) any { return entries(m, d) }
	case "keys":
		call = func(*meter) any { return &list{items: d.keys} }
	case "values":
		call = func(*meter) any { return &list{items: d.values} }
	case "get":
		return &function{name, func(m *machine, a args) any {
			given := a.bind(name, 1, "key", "default")
			if v, ok := d.get(given[0]); ok {
				return v
			}
			if given[1] == (missing{}) {
				return nil
			}
			return given[1]
		}}
	default:
		return nil
	}
	return &function{name, func(m *machine, a args) any {
		a.bind(name, 0)
		return call(m.meter)
	}}
}

// entries returns the key-value pairs of a dict.
func entries(m *meter, d *dict) *list {
	m.work(3 * itemWork * len(d.keys))
	out := &list{items: make([]any, len(d.keys))}
	for i, k := range d.keys {
		out.items[i] = &list{[]any{k, d.values[i]}, true}
	}
	return out
}

// search counts a value in a list, or finds it.
func search(m *meter, l *list, how string, v any) any {
	n := int64(0)
	for i, item := range l.items {
		if !equal(m, item, v) {
			continue
		}
		if n++; how == "index" {
			return int64(i)
		}
	}
	if how == "index" {
		fail("the value to find is not there")
	}
	return n
}

// text returns a value that must be a string.
func text(m *meter, v any) string {
	s, ok := defined(v).(string)
	if !ok {
		fail("found a %s, expected a str", typeName(v))
	}
	m.work(len(s))
	return s
}

// either returns a string, or the strings of a tuple.
func either(m *meter, v any) []string {
	l, ok := v.(*list)
	if !ok {
		return []string{text(m, v)}
	}
	var all []string
	for _, item := range l.items {
		all = append(all, text(m, item))
	}
	return all
}

// separator returns a string that must not be empty.
func separator(m *meter, v any) string {
	s := text(m, v)
	if s == "" {
		fail("the separator is empty")
	}
	return s
}

// limit returns a maximum number of repetitions; negative means no limit.
func limit(v any) int {
	if v == (missing{}) || v == nil {
		return -1
	}
	return intOf(v)
}

// texts returns a list of strings.
func texts(m *meter, all []string) *list {
	m.work(itemWork * len(all))
	out := &list{items: make([]any, len(all))}
	for i, s := range all {
		out.items[i] = s
	}
	return out
}

// trim removes characters from the ends, by default blanks.
func trim(m *meter, s string, chars any, left, right bool) string {
	cut := unicode.IsSpace
	if chars != (missing{}) && chars != nil {
		set := text(m, chars)
		m.work(len(s))
		cut = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

// split splits a string at a separator, or at blanks if none exists, at most most times, from the left or the right.
func split(m *meter, s string, sep any, most int, fromRight bool) []string {
	if sep == (missing{}) || sep == nil {
		return fields(s, most, fromRight)
	}
	by := separator(m, sep)
	switch {
	case most < 0:
		return strings.Split(s, by)
	case !fromRight:
		return strings.SplitN(s, by, most+1)
	}
	var parts []string
	for ; most > 0; most-- {
		i := strings.LastIndex(s, by)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(by):])
		s = s[:i]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return parts
}

// fields splits at blanks, at most most times; the rest keeps its other blanks.
func fields(s string, most int, fromRight bool) []string {
	var parts []string
	for {
		if fromRight {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		} else {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if s == "" {
			break
		}
		i, after := strings.IndexFunc(s, unicode.IsSpace), 0
		if fromRight {
			i = strings.LastIndexFunc(s, unicode.IsSpace)
		}
		if i < 0 || len(parts) == most {
			parts = append(parts, s)
			break
		}
		_, after = utf8.DecodeRuneInString(s[i:])
		if fromRight {
			parts, s = append(parts, s[i+after:]), s[:i]
		} else {
			parts, s = append(parts, s[:i]), s[i+after:]
		}
	}
	if fromRight {
		slices.Reverse(parts)
	}
	return parts
}

// lines splits at line breaks, without an empty last line.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s)
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// replaced replaces at most most occurrences of old in s.
func replaced(m *meter, s, old, fresh string, most int) string {
	n := strings.Count(s, old)
	if most >= 0 {
		n = min(n, most)
	}
	m.work(product(max(len(fresh), 1), int64(n)))
	m.work(len(s))
	return strings.Replace(s, old, fresh, most)
}

// join joins values with a separator.
func join(m *meter, items []any, sep string, text func(*meter, any) string) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteString(sep)
		}
		s := text(m, item)
		m.work(len(s) + len(sep) + 1)
		b.WriteString(s)
	}
	return b.String()
}

// characters converts a position in bytes to one in characters.
func characters(s string, i int) int64 {
	if i < 0 {
		return -1
	}
	return int64(utf8.RuneCountInString(s[:i]))
}

func every(is func(rune) bool) func(*meter, string, []any) any {
	return func(_ *meter, s string, _ []any) any {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
	}
}

// title capitalises each word; a word consists of characters for which within is true.
func title(s string, within func(rune) bool) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		first := !inWord
		inWord = within(r)
		if first && inWord {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}
