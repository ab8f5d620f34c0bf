package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// jsonWriter writes a value like Python's json.dumps.
type jsonWriter struct {
	m         *meter
	b         strings.Builder
	ascii     bool
	sorted    bool
	indent    string // of one level
	pretty    bool
	item, key string // separators of items, and of a key and its value
}

// toJSON implements the filter tojson of transformers: no HTML escapes, non-ASCII letters unchanged.
func toJSON(m *machine, v any, a args) any {
	given := a.bind("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	w := &jsonWriter{m: m.meter, item: ", ", key: ": "}
	w.ascii = given[0] != (missing{}) && truth(given[0])
	w.sorted = given[3] != (missing{}) && truth(given[3])
	switch indent := given[1].(type) {
	case nil, missing:
	case string:
		w.indent, w.pretty, w.item = indent, true, ","
	default:
		n := max(intOf(indent), 0)
		m.work(n)
		w.indent, w.pretty, w.item = strings.Repeat(" ", n), true, ","
	}
	if l, ok := given[2].(*list); ok {
		if len(l.items) != 2 {
			fail("tojson takes two separators")
		}
		w.item, w.key = text(m.meter, l.items[0]), text(m.meter, l.items[1])
	}
	w.value(v, 0)
	return w.b.String()
}

func (w *jsonWriter) write(s string) {
	w.m.work(len(s))
	w.b.WriteString(s)
}

func (w *jsonWriter) value(v any, level int) {
	w.m.down()
	defer w.m.up()
	switch v := defined(v).(type) {
	case nil:
		w.write("null")
	case bool:
		w.write(strconv.FormatBool(v))
	case int64:
		w.write(strconv.FormatInt(v, 10))
	case float64:
		w.write(jsonFloat(v))
	case string:
		w.text(v)
	case *list:
		w.each("[", "]", len(v.items), level, func(i int) { w.value(v.items[i], level+1) })
	case *dict:
		w.dict(v, level)
	default:
		fail("a %s cannot be written as JSON", typeName(v))
	}
}

// each writes items between brackets.
func (w *jsonWriter) each(open, closing string, n, level int, item func(i int)) {
	w.write(open)
	for i := range n {
		if i > 0 {
			w.write(w.item)
		}
		w.newLine(level + 1)
		item(i)
	}
	if n > 0 {
		w.newLine(level)
	}
	w.write(closing)
}

func (w *jsonWriter) newLine(level int) {
	if w.pretty {
		w.m.work(product(len(w.indent), int64(level)))
		w.write("\n" + strings.Repeat(w.indent, level))
	}
}

func (w *jsonWriter) dict(d *dict, level int) {
	pairs := entries(w.m, d).items
	if w.sorted {
		pairs = sorted(w.m, pairs, func(p any) any { return p.(*list).items[0] }, false)
	}
	w.each("{", "}", len(pairs), level, func(i int) {
		pair := pairs[i].(*list).items
		switch k := pair[0].(type) {
		case string:
			w.text(k)
		case nil, bool, int64, float64:
			w.write(`"`)
			w.value(k, level)
			w.write(`"`)
		}
		w.write(w.key)
		w.value(pair[1], level+1)
	})
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func (w *jsonWriter) text(s string) {
	w.m.work(len(s) + 2)
	w.b.WriteByte('"')
	for _, r := range s {
		escape, special := jsonEscapes[r]
		switch {
		case special:
			w.write(escape)
		case r < 0x20 || w.ascii && r > 0x7e && r < 0x10000:
			w.write(fmt.Sprintf(`\u%04x`, r))
		case w.ascii && r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			w.write(fmt.Sprintf(`\u%04x\u%04x`, high, low))
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}
