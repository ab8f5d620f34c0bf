package report

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// lineWidth is the longest line of the JSON document; longer values are split over several lines.
const lineWidth = 120

// layout formats compact JSON in lines.
type layout struct{ *bufio.Writer }

func newLayout(w io.Writer) layout { return layout{bufio.NewWriter(w)} }

// value writes a value at an indentation.
func (l layout) value(v []byte, indent int) {
	if len(v)+indent <= lineWidth || (v[0] != '{' && v[0] != '[') {
		l.flat(v)
		return
	}
	object, last := v[0] == '{', v[len(v)-1]
	l.WriteByte(v[0])
	for rest := v[1:]; rest[0] != last; {
		l.line(indent + 2)
		n := extent(rest)
		if object {
			l.Write(rest[:n])
			l.WriteString(": ")
			rest = rest[n+1:]
			n = extent(rest)
		}
		l.value(rest[:n], indent+2)
		if rest = rest[n:]; rest[0] == ',' {
			l.WriteByte(',')
			rest = rest[1:]
		}
	}
	l.line(indent)
	l.WriteByte(last)
}

func (l layout) line(indent int) { l.WriteString("\n" + strings.Repeat(" ", indent)) }

// flat writes a value on one line, with a space after each comma and colon.
func (l layout) flat(v []byte) {
	quoted := false
	for i, c := range v {
		l.WriteByte(c)
		switch {
		case c == '"' && !escaped(v[:i]):
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			l.WriteByte(' ')
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
