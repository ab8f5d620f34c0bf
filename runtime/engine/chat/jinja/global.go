package jinja

import (
	"fmt"
	"strings"
	"time"
)

// globals are the functions available in every template: those of jinja2 and of transformers.
var globals = []*function{
	{"range", func(m *machine, a args) any { return rangeList(m.meter, a) }},
	{"namespace", func(m *machine, a args) any {
		ns := &namespace{map[string]any{}}
		for _, v := range a.positional {
			d, ok := v.(*dict)
			if !ok {
				fail("namespace takes a dict, not a %s", typeName(v))
			}
			for i, k := range d.keys {
				ns.vars[text(m.meter, k)] = d.values[i]
			}
		}
		for name, v := range a.named {
			ns.vars[name] = v
		}
		return ns
	}},
	{"dict", func(m *machine, a args) any {
		d := newDict()
		for _, v := range a.positional {
			from, ok := v.(*dict)
			if !ok {
				fail("dict takes a dict, not a %s", typeName(v))
			}
			for i, k := range from.keys {
				d.put(m.meter, k, from.values[i])
			}
		}
		for _, name := range a.names {
			d.put(m.meter, name, a.named[name])
		}
		return d
	}},
	{"raise_exception", func(m *machine, a args) any {
		panic(failure{Raised{str(m.meter, a.bind("raise_exception", 1, "message")[0])}})
	}},
	{"strftime_now", func(m *machine, a args) any {
		return strftime(m, text(m.meter, a.bind("strftime_now", 1, "format")[0]))
	}},
}

// rangeList implements range(stop), range(start, stop) and range(start, stop, step).
func rangeList(m *meter, a args) any {
	given := a.bind("range", 1, "start", "stop", "step")
	from, to, by := 0, intOf(given[0]), 1
	if given[1] != (missing{}) {
		from, to = to, intOf(given[1])
	}
	if given[2] != (missing{}) {
		by = intOf(given[2])
	}
	if by == 0 {
		fail("the step of a range is 0")
	}
	out := &list{}
	for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
		m.work(itemWork)
		out.items = append(out.items, int64(i))
		if next := i + by; (next > i) != (by > 0) { // overflow: past the last integer
			break
		}
	}
	return out
}

// directives maps locale-independent strftime directives to layouts of time.Format.
var directives = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM",
	'S': "05", 'y': "06", 'Y': "2006", 'Z': "MST", 'z': "-0700", 'j': "002", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05",
	'D': "01/02/06", 'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'h': "Jan",
}

// strftime formats the time as C's strftime does.
func strftime(m *machine, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		plain := format[i] == '-' && i+1 < len(format) // without leading zeros
		if plain {
			i++
		}
		text := directive(m.now, format[i])
		if plain {
			text = strings.TrimLeft(text, "0 ")
		}
		m.work(len(text))
		b.WriteString(text)
	}
	return b.String()
}

func directive(now time.Time, d byte) string {
	switch d {
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'f':
		return fmt.Sprintf("%06d", now.Nanosecond()/int(time.Microsecond))
	case 's':
		return fmt.Sprint(now.Unix())
	case 'u':
		return fmt.Sprint((int(now.Weekday())+6)%7 + 1)
	case 'w':
		return fmt.Sprint(int(now.Weekday()))
	}
	layout, ok := directives[d]
	if !ok {
		fail("strftime_now knows no %%%c", d)
	}
	return now.Format(layout)
}
