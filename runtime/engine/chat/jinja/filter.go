package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// filters holds the jinja2 filters that chat templates use.
var filters map[string]func(m *machine, v any, a args) any

func init() { // some filters look up other filters in the table
	filters = map[string]func(m *machine, v any, a args) any{
		"abs": absolute, "capitalize": onText(capitalize), "count": count, "d": defaulted, "default": defaulted,
		"dictsort": dictSorted, "e": escaped, "escape": escaped, "first": firstOrLast(true), "float": toFloat, "format": format,
		"indent": indented, "int": toInt, "items": items, "join": joinedItems, "last": firstOrLast(false), "length": count,
		"list": toList, "lower": onText(strings.ToLower), "map": mapped, "max": extreme(1), "min": extreme(-1),
		"reject": chosenItems(false, false), "rejectattr": chosenItems(false, true), "replace": replace, "reverse": reversed,
		"round": rounded, "safe": toText, "select": chosenItems(true, false), "selectattr": chosenItems(true, true),
		"sort": sortedItems, "string": toText, "sum": sum, "title": onText(titled), "tojson": toJSON, "trim": trimmed,
		"unique": unique, "upper": onText(strings.ToUpper), "wordcount": wordCount,
	}
}

// onText returns a filter that applies a function to a value's text.
func onText(f func(string) string) func(*machine, any, args) any {
	return func(m *machine, v any, a args) any {
		a.bind("the filter", 0)
		s := str(m.meter, v)
		m.work(2 * len(s))
		return f(s)
	}
}

// titled implements jinja2's title filter: words start after blanks and brackets.
func titled(s string) string {
	return title(s, func(r rune) bool { return !unicode.IsSpace(r) && !strings.ContainsRune("-({[<", r) })
}

func toText(m *machine, v any, _ args) any { return str(m.meter, v) }

func toList(m *machine, v any, _ args) any {
	all := iterate(m.meter, v)
	m.work(itemWork * len(all))
	return &list{items: all}
}

func count(m *machine, v any, _ args) any { return int64(length(m.meter, v)) }

func absolute(m *machine, v any, _ args) any {
	switch v := whole(defined(v)).(type) {
	case int64:
		return max(v, subtract(0, v))
	case float64:
		return math.Abs(v)
	}
	fail("abs takes a number, not a %s", typeName(v))
	return nil
}

func defaulted(m *machine, v any, a args) any {
	given := a.bind("default", 0, "default_value", "boolean")
	_, isUndefined := v.(undefined)
	if !isUndefined && (given[1] == (missing{}) || !truth(given[1]) || truth(v)) {
		return v
	}
	if given[0] == (missing{}) {
		return ""
	}
	return given[0]
}

func trimmed(m *machine, v any, a args) any {
	s := str(m.meter, v)
	m.work(len(s))
	return trim(m.meter, s, a.bind("trim", 0, "chars")[0], true, true)
}

func replace(m *machine, v any, a args) any {
	given := a.bind("replace", 2, "old", "new", "count")
	return replaced(m.meter, str(m.meter, v), str(m.meter, given[0]), str(m.meter, given[1]), limit(given[2]))
}

func format(m *machine, v any, a args) any {
	return formatted(m.meter, str(m.meter, v), &list{a.positional, true})
}

func wordCount(m *machine, v any, _ args) any {
	s := str(m.meter, v)
	m.work(len(s))
	return int64(len(strings.FieldsFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })))
}

// escaped escapes a text for HTML.
func escaped(m *machine, v any, _ args) any {
	s := str(m.meter, v)
	m.work(5 * len(s))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func indented(m *machine, v any, a args) any {
	given := a.bind("indent", 0, "width", "first", "blank")
	by := "    "
	switch width := given[0].(type) {
	case missing:
	case string:
		by = width
	default:
		m.work(max(intOf(width), 0))
		by = strings.Repeat(" ", max(intOf(width), 0))
	}
	yes := func(v any) bool { return v != (missing{}) && truth(v) }
	all := lines(text(m.meter, v) + "\n")
	m.work(product(len(by)+1, int64(len(all))))
	for i, line := range all {
		if i == 0 && yes(given[1]) || i > 0 && (line != "" || yes(given[2])) {
			all[i] = by + line
		}
	}
	return join(m.meter, texts(m.meter, all).items, "\n", text)
}

func toInt(m *machine, v any, a args) any {
	given := a.bind("int", 0, "default", "base")
	otherwise := given[0]
	if otherwise == (missing{}) {
		otherwise = int64(0)
	}
	switch v := whole(v).(type) {
	case int64:
		return v
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= 1<<63 {
			return otherwise
		}
		return int64(v)
	case string:
		base := 10
		if given[1] != (missing{}) {
			base = intOf(given[1])
		}
		if base != 0 && (base < 2 || base > 36) {
			return otherwise
		}
		s := strings.TrimSpace(v)
		if prefix, found := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; found {
			s = strings.TrimPrefix(strings.ToLower(s), prefix)
		}
		if n, err := strconv.ParseInt(s, base, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<63 {
			return int64(f)
		}
	}
	return otherwise
}

func toFloat(_ *machine, v any, a args) any {
	if f, ok := number(v); ok {
		return f
	}
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f
		}
	}
	if otherwise := a.bind("float", 0, "default")[0]; otherwise != (missing{}) {
		return otherwise
	}
	return 0.0
}

func rounded(m *machine, v any, a args) any {
	given := a.bind("round", 0, "precision", "method")
	x, ok := number(defined(v))
	if !ok {
		fail("round takes a number, not a %s", typeName(v))
	}
	digits := 0
	if given[0] != (missing{}) {
		digits = intOf(given[0])
	}
	unit := math.Pow(10, float64(digits))
	switch given[1] {
	case missing{}, "common":
		if i, isInt := whole(v).(int64); isInt {
			return i
		}
		return math.RoundToEven(x*unit) / unit
	case "ceil":
		return math.Ceil(x*unit) / unit
	case "floor":
		return math.Floor(x*unit) / unit
	}
	fail("round takes the methods common, ceil and floor")
	return nil
}
