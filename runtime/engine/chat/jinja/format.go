package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatter implements Python's str.format.
type formatter struct {
	*meter
	args
	next   int  // number of the next field without a name
	manual bool // fields have numbers
}

// expand replaces the fields of a format; those in the specification of another field are nested.
func (f *formatter) expand(format string, nested bool) string {
	var b strings.Builder
	for format != "" {
		i := strings.IndexAny(format, "{}")
		if i < 0 {
			i = len(format)
		}
		f.work(i + 1)
		b.WriteString(format[:i])
		switch format = format[i:]; {
		case strings.HasPrefix(format, "{{"), strings.HasPrefix(format, "}}"):
			b.WriteByte(format[0])
			format = format[2:]
		case strings.HasPrefix(format, "{"):
			end := fieldEnd(format)
			b.WriteString(f.field(format[1:end], nested))
			format = format[end+1:]
		case format != "":
			fail("the format has a single }")
		}
	}
	return b.String()
}

// fieldEnd returns the position of the bracket that closes the first one.
func fieldEnd(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	fail("the format has a single {")
	return 0
}

// field returns the text of NAME, NAME!CONVERSION or NAME:SPECIFICATION.
func (f *formatter) field(field string, nested bool) string {
	name, spec, _ := strings.Cut(field, ":")
	name, conversion, converted := strings.Cut(name, "!")
	v := f.value(name)
	switch {
	case converted && conversion == "r":
		v = repr(f.meter, v)
	case converted && conversion == "s":
		v = str(f.meter, v)
	case converted:
		fail("the format has an unknown conversion")
	}
	if strings.ContainsAny(spec, "{}") {
		if nested {
			fail("the format is nested too deeply")
		}
		spec = f.expand(spec, true)
	}
	text := ""
	if spec == "" {
		text = str(f.meter, v)
	} else {
		text = readSpec(f.meter, spec).apply(f.meter, v)
	}
	f.work(len(text))
	return text
}

// value returns the argument of a field: a number or a name, followed by .attribute or [element].
func (f *formatter) value(field string) any {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, rest := field[:end], field[end:]
	at, err := strconv.Atoi(name)
	var v any
	switch isNumber := err == nil && at >= 0; {
	case name == "" || isNumber:
		if name == "" {
			at = f.next
			f.next++
		} else {
			f.manual = true
		}
		if f.manual && f.next > 0 {
			fail("the format has fields with and without numbers")
		}
		if at >= len(f.positional) {
			fail("the format wants more than %d values", len(f.positional))
		}
		v = f.positional[at]
	default:
		var ok bool
		if v, ok = f.named[name]; !ok {
			fail("the format wants a value with a name that is missing")
		}
	}
	for rest != "" {
		if after, ok := strings.CutPrefix(rest, "."); ok {
			end = strings.IndexAny(after+".", ".[")
			v, rest = attribute(f.meter, v, after[:end]), after[end:]
			continue
		}
		key, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]")
		if !ok || rest[0] != '[' {
			fail("the format has a field that is not complete")
		}
		if n, err := strconv.ParseInt(key, 10, 64); err == nil {
			v = item(f.meter, v, n)
		} else {
			v = item(f.meter, v, key)
		}
		rest = after
	}
	return v
}

// spec is a format specification: [[FILL]ALIGN][SIGN][0][WIDTH][,][.PRECISION][TYPE].
type spec struct {
	fill      rune
	align     byte // one of <>=^; 0: not given
	sign      byte // '+' or ' ' for positive numbers; '-' or 0: none
	zero      bool
	width     int
	group     string // between thousands
	precision int    // -1: not given
	kind      string
}

func readSpec(m *meter, text string) spec {
	s := spec{fill: ' ', precision: -1}
	_, n := utf8.DecodeRuneInString(text)
	if len(text) > n && strings.IndexByte("<>=^", text[n]) >= 0 {
		s.fill, _ = utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	take := func(any string) (c byte) {
		if text != "" && strings.IndexByte(any, text[0]) >= 0 {
			c, text = text[0], text[1:]
		}
		return c
	}
	number := func() int {
		digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
		n, err := strconv.Atoi("0" + digits)
		if err != nil || n > maxWork {
			n = maxWork
		}
		m.work(n)
		text = text[len(digits):]
		return n
	}
	s.align, s.sign = take("<>=^"), take("+- ")
	if s.zero = take("0") != 0; s.zero && s.align == 0 {
		s.fill = '0'
	}
	s.width = number()
	if group := take(",_"); group != 0 {
		s.group = string(group)
	}
	if take(".") != 0 {
		s.precision = number()
	}
	s.kind = text
	return s
}

// apply formats a value that is not None, a list or a dict.
func (s spec) apply(m *meter, v any) string {
	x, isNumber := number(v)
	i, isInt := whole(v).(int64)
	text, isText := v.(string)
	switch {
	case isText && (s.kind == "" || s.kind == "s") && s.sign == 0 && s.group == "" && s.align != '=':
		if m.work(len(text)); s.precision >= 0 && s.precision < utf8.RuneCountInString(text) {
			text = string([]rune(text)[:s.precision])
		}
		return s.pad("", text, '<')
	case isInt && (s.kind == "" || s.kind == "d") && s.precision < 0:
		text = strings.TrimPrefix(strconv.FormatInt(i, 10), "-")
	case isInt && s.precision < 0 && (s.kind == "x" || s.kind == "X" || s.kind == "o" || s.kind == "b") && s.group == "":
		base := map[string]int{"x": 16, "X": 16, "o": 8, "b": 2}[s.kind]
		if text = strings.TrimPrefix(strconv.FormatInt(i, base), "-"); s.kind == "X" {
			text = strings.ToUpper(text)
		}
	case isNumber && !isInt && s.kind == "" && s.precision < 0:
		text = strings.TrimPrefix(str(m, x), "-")
	case isNumber:
		text = s.decimal(math.Abs(x))
	default:
		fail("a %s has no such format", typeName(v))
	}
	sign := ""
	switch {
	case x < 0 || math.Signbit(x):
		sign = "-"
	case s.sign == '+' || s.sign == ' ':
		sign = string(s.sign)
	}
	if s.group != "" {
		if s.fill == '0' {
			fail("the format pads groups of digits with zeros, which is not supported")
		}
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		for at := digits - 3; at > 0; at -= 3 {
			text = text[:at] + s.group + text[at:]
		}
	}
	return s.pad(sign, text, '>')
}

// decimal returns a number that is not negative in the types e, f and %.
func (s spec) decimal(x float64) string {
	precision := s.precision
	if precision < 0 {
		precision = 6
	}
	kind, after := s.kind, ""
	if kind == "%" {
		x, kind, after = 100*x, "f", "%"
	}
	switch {
	case kind != "f" && kind != "F" && kind != "e" && kind != "E":
		fail("the format has a type that is not supported")
	case math.IsInf(x, 0) || math.IsNaN(x):
		fail("the format takes a finite number")
	}
	return strconv.FormatFloat(x, strings.Replace(kind, "F", "f", 1)[0], precision, 64) + after
}

// pad fills the text to the width.
func (s spec) pad(sign, text string, align byte) string {
	if s.align != 0 {
		align = s.align
	} else if s.zero && align == '>' {
		align = '='
	}
	n := max(s.width-utf8.RuneCountInString(sign+text), 0)
	fill := func(n int) string { return strings.Repeat(string(s.fill), n) }
	switch align {
	case '<':
		return sign + text + fill(n)
	case '^':
		return fill(n/2) + sign + text + fill(n-n/2)
	case '=':
		return sign + fill(n) + text
	}
	return fill(n) + sign + text
}
