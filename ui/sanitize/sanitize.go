// Package sanitize makes external text (tokens, prompts, model names, labels, log lines, error bodies) safe to draw:
// its results are clean in the sense of profiler/clean, and all terminals agree on their width in cells.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/displaywidth"

	"github.com/llmtop/llmtop/profiler/clean"
)

// tab replaces a tab: text wraps at any column, so a tab stop has no fixed place.
const tab = "    "

// maxMarks bounds the combining marks of a character; more would overlap the lines above.
const maxMarks = 2

// Width returns the number of cells of a rune of sanitised text: 0 for a combining mark, 2 for a wide character.
func Width(r rune) int {
	if r < 0x300 {
		return 1
	}
	return displaywidth.Rune(r)
}

// StringWidth returns the sum of Width over the runes of sanitised text.
func StringWidth(s string) int {
	n := 0
	for _, r := range s {
		n += Width(r)
	}
	return n
}

// Line cleans text into one line: newlines and tabs become spaces.
func Line(s string) string { return cells(clean.Line(s)) }

// Text cleans text, keeps newlines (CR LF counts as one) and turns tabs into four spaces.
func Text(s string) string { return cells(clean.Text(s)) }

// cells replaces characters on whose width terminals disagree. It returns s itself if nothing changes, which is almost always.
func cells(s string) string {
	i := plainPrefix(s)
	if i == len(s) {
		return s
	}
	var w strings.Builder
	w.Grow(len(s) + 16)
	w.WriteString(s[:i])
	for i < len(s) {
		switch s[i] {
		case '\n':
			w.WriteByte('\n')
			i++
		case '\t':
			w.WriteString(tab)
			i++
		default:
			c, n := cluster(s[i:])
			w.WriteString(c)
			i += n
		}
	}
	return w.String()
}

// plainPrefix returns the length of the longest prefix of s that is printable ASCII and newlines, less one byte if a
// combining mark may follow it.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c > 0x7e) && c != '\n' {
			return max(i-1, 0)
		}
	}
	return len(s)
}

// cluster returns the replacement of the first character of s with its combining marks, and its length in s. Terminals
// measure either by rune or by cluster; a cluster for which the two differ is replaced, so that no row is wider than
// computed.
func cluster(s string) (c string, n int) {
	c, n = base(s)
	byRune := StringWidth(c)
	first, _ := utf8.DecodeRuneInString(c)
	if byRune == 0 || byRune != ansi.StringWidth(c) || byRune != ansi.StringWidthWc(c) || !unicode.IsPrint(first) {
		return string(clean.Replacement), n
	}
	return c, n
}

// base returns one base rune and at most maxMarks marks from the start of s; n also counts further marks.
func base(s string) (c string, n int) {
	_, n = utf8.DecodeRuneInString(s)
	keep, marks := n, 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !unicode.In(r, unicode.Mn, unicode.Me) {
			break
		}
		n += size
		if marks++; marks <= maxMarks && Width(r) == 0 && keep == n-size {
			keep = n
		}
	}
	return s[:keep], n
}
