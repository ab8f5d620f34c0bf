package report

import (
	"bytes"
	"strings"
)

// lineWidth is the longest line of the JSON document; longer values are split over several lines.
const lineWidth = 120

// json writes compact JSON in lines at an indentation.
func (w writer) json(v []byte, indent int) {
	if len(v)+indent <= lineWidth || (v[0] != '{' && v[0] != '[') {
		w.jsonFlat(v)
		return
	}
	object, last := v[0] == '{', v[len(v)-1]
	w.WriteByte(v[0])
	for rest := v[1:]; rest[0] != last; {
		w.jsonLine(indent + 2)
		n := extent(rest)
		if object {
			w.Write(rest[:n])
			w.WriteString(": ")
			rest = rest[n+1:]
			n = extent(rest)
		}
		w.json(rest[:n], indent+2)
		if rest = rest[n:]; rest[0] == ',' {
			w.WriteByte(',')
			rest = rest[1:]
		}
	}
	w.jsonLine(indent)
	w.WriteByte(last)
}

func (w writer) jsonLine(indent int) { w.WriteString("\n" + strings.Repeat(" ", indent)) }

// flat writes a value on one line, with a space after each comma and colon.
func (w writer) jsonFlat(v []byte) {
	quoted := false
	for i, c := range v {
		w.WriteByte(c)
		switch {
		case c == '"' && !escaped(v[:i]):
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			w.WriteByte(' ')
		}
	}
}

// escaped reports whether the next character is escaped: before ends in an odd number of backslashes.
func escaped(before []byte) bool {
	return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1
}

// extent returns the length of the value at the start of src.
func extent(src []byte) int {
	depth, quoted := 0, false
	for i, c := range src {
		switch {
		case c == '"' && !escaped(src[:i]):
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return i
			}
		case depth == 0 && (c == ',' || c == ':'):
			return i
		}
	}
	return len(src)
}
