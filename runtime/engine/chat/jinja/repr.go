package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// str formats a value like {{ }}.
func str(m *meter, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	return repr(m, v)
}

// repr formats a value like Python's repr.
func repr(m *meter, v any) string {
	var b strings.Builder
	writeRepr(m, &b, v)
	return b.String()
}

func writeRepr(m *meter, b *strings.Builder, v any) {
	m.down()
	defer m.up()
	before := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatRepr(v))
	case string:
		m.work(len(v))
		quoteInto(b, v)
	case *list:
		reprList(m, b, v)
		return
	case *dict:
		m.work(len(v.keys))
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			writeRepr(m, b, k)
			b.WriteString(": ")
			writeRepr(m, b, v.values[i])
		}
		b.WriteByte('}')
		return
	case undefined:
		b.WriteString("Undefined")
	default:
		b.WriteString("<" + typeName(v) + ">")
	}
	m.work(b.Len() - before)
}

func reprList(m *meter, b *strings.Builder, l *list) {
	m.work(len(l.items) + 2)
	open, closing := "[", "]"
	if l.tuple {
		open, closing = "(", ")"
	}
	b.WriteString(open)
	for i, item := range l.items {
		if i > 0 {
			b.WriteString(", ")
		}
		writeRepr(m, b, item)
	}
	if l.tuple && len(l.items) == 1 {
		b.WriteByte(',')
	}
	b.WriteString(closing)
}

// floatRepr formats a float like Python: the shortest digits that identify it, always with a point or an exponent.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	case math.IsNaN(f):
		return "nan"
	case f != 0 && (math.Abs(f) < 1e-4 || math.Abs(f) >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	case f == math.Trunc(f):
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// quoteInto writes a quoted string like Python's repr.
func quoteInto(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r >= 0x7f && r < 0x100 && !unicode.IsPrint(r):
			fmt.Fprintf(b, `\x%02x`, r)
		case !unicode.IsPrint(r) && r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte(quote)
}
