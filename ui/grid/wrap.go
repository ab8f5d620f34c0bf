package grid

import (
	"unicode/utf8"

	"github.com/llmtop/llmtop/ui/sanitize"
)

// Wrap appends the lines of sanitised text, at most w cells each, to dst. It breaks at spaces if there are any, inside
// words that are too long, and always at newlines. Lines are substrings of s.
func Wrap(dst []string, s string, w int) []string {
	if w < 1 {
		return dst
	}
	for len(s) > 0 {
		end, next := breakLine(s, w)
		dst = append(dst, s[:end])
		if next == len(s) && next > end && s[next-1] == '\n' {
			dst = append(dst, "")
		}
		s = s[next:]
	}
	return dst
}

// Wrapped draws sanitised text from (x, y) in as many rows as it needs, and returns the row below.
func (a Area) Wrapped(x, y int, st Style, s string) int {
	for _, line := range Wrap(nil, s, a.W-x) {
		a.Text(x, y, st, line)
		y++
	}
	return y
}

// breakLine returns the end of the first line of s and the start of the next.
func breakLine(s string, w int) (end, next int) {
	cells, space := 0, -1
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\n' {
			return i, i + 1
		}
		width := sanitize.Width(r)
		if cells+width > w {
			switch {
			case r == ' ':
				return i, i + 1
			case space > 0:
				return space, space + 1
			case i == 0:
				return n, n // wider than the line: drawing clips it
			}
			return i, i
		}
		if r == ' ' {
			space = i
		}
		cells += width
		i += n
	}
	return len(s), len(s)
}
