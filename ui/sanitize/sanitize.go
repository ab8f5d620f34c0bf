// Package sanitize makes text from outside (tokens, prompts, model names, labels, log lines, error bodies) safe to draw: what
// it returns holds no control codes, no escape sequences, nothing that reorders or hides text, and its width is known.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-runewidth"
)

// Replacement stands for each character or byte that cannot be shown.
const Replacement = '\uFFFD'

// tab is what a tab becomes: columns depend on where the text is wrapped, so a tab stop has no fixed place.
const tab = "    "

// maxMarks is how many combining marks a character keeps; more would climb over the lines above.
const maxMarks = 2

var widths = runewidth.Condition{} // ambiguous characters are one cell, whatever the locale

// Width is the number of cells that sanitised text takes: 0 for a combining mark, 2 for a wide character.
func Width(r rune) int {
	if r < 0x300 {
		return 1
	}
	return widths.RuneWidth(r)
}

// StringWidth is the sum of Width over the runes of sanitised text.
func StringWidth(s string) int {
	n := 0
	for _, r := range s {
		n += Width(r)
	}
	return n
}

// Line makes one line: newlines and tabs become spaces.
func Line(s string) string { return clean(s, false) }

// Text keeps newlines (CR LF counts as one) and turns tabs into four spaces.
func Text(s string) string { return clean(s, true) }

// writer takes text apart into units (a character with its marks, a control, a whole escape sequence) and writes what
// each becomes.
type writer struct {
	strings.Builder
	lines bool // keep newlines
}

// clean returns s itself where nothing needs to be done, which is nearly always.
func clean(s string, lines bool) string {
	i := plainPrefix(s, lines)
	if i == len(s) {
		return s
	}
	w := writer{lines: lines}
	w.Grow(len(s) + 16)
	w.WriteString(s[:i])
	for i < len(s) {
		i += w.next(s[i:])
	}
	return w.String()
}

// plainPrefix is the length of the longest start of s that is printable ASCII (or newlines, where allowed), one byte short
// when a combining mark may follow it.
func plainPrefix(s string, lines bool) int {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c > 0x7e) && !(lines && c == '\n') {
			return max(i-1, 0)
		}
	}
	return len(s)
}

// next writes what the unit at the start of s becomes and returns its length.
func (w *writer) next(s string) int {
	if c := s[0]; c < 0x20 || c == 0x7f {
		return w.control(s)
	}
	if n := c1(s); n > 0 {
		return w.introduced(s, n, s[n-1]&0x1f|0x40)
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1, reorders(r):
		w.WriteRune(Replacement)
		return n
	case hidden(r):
		return n
	}
	return w.cluster(s)
}

// control handles the C0 controls: layout, escape sequences, and the rest, shown as a replacement.
func (w *writer) control(s string) int {
	switch s[0] {
	case '\n':
		return w.newline(1)
	case '\r':
		if len(s) > 1 && s[1] == '\n' {
			return w.newline(2)
		}
		return w.newline(1)
	case '\t':
		if w.lines {
			w.WriteString(tab)
		} else {
			w.WriteByte(' ')
		}
		return 1
	case 0x1b:
		if len(s) > 1 && s[1] >= 0x20 && s[1] < 0x7f {
			return w.introduced(s, 2, s[1])
		}
	}
	w.WriteRune(Replacement)
	return 1
}

func (w *writer) newline(n int) int {
	if w.lines {
		w.WriteByte('\n')
	} else {
		w.WriteByte(' ')
	}
	return n
}

// c1 is the length of an 8-bit control at the start of s: the bare byte 0x80 to 0x9f outside UTF-8, or U+0080 to U+009F.
func c1(s string) int {
	if s[0] >= 0x80 && s[0] < 0xa0 {
		return 1
	}
	if len(s) > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 {
		return 2
	}
	return 0
}

// maxSequence bounds how far a sequence without its end is followed, so that it cannot swallow the text after it.
const maxSequence = 256

// introduced shows one replacement for the escape sequence whose introducer (the byte after ESC in its 7-bit form) ends
// at s[lead].
func (w *writer) introduced(s string, lead int, intro byte) int {
	n := 0
	switch {
	case intro == '[':
		n = parameters(s[lead:], 0x40)
	case intro < 0x30:
		n = parameters(s[lead:], 0x30)
	case strings.IndexByte("]PX^_", intro) >= 0:
		n = stringControl(s[lead:])
	}
	w.WriteRune(Replacement)
	return lead + n
}

// parameters is the length of parameter and intermediate bytes with the final byte, which is final or above; 0 without an end.
func parameters(s string, final byte) int {
	for i := 0; i < len(s) && i < maxSequence; i++ {
		switch c := s[i]; {
		case c >= final && c < 0x7f:
			return i + 1
		case c < 0x20 || c >= 0x7f:
			return i
		}
	}
	return 0
}

// stringControl is the length of an OSC, DCS, SOS, PM or APC string with its end (BEL, ST, 8-bit ST); 0 without an end.
func stringControl(s string) int {
	for i := 0; i < len(s) && i < maxSequence; i++ {
		switch {
		case s[i] == 7:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\', s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		}
	}
	return 0
}

// hidden are characters that take no cell and change what others look like: joiners, selectors, tags, byte order mark.
func hidden(r rune) bool {
	switch {
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200d, r >= 0x2060 && r <= 0x2064, r >= 0x206a && r <= 0x206f:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// reorders are the bidirectional controls and the separators that some terminals obey as line ends.
func reorders(r rune) bool {
	return r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xfff9 && r <= 0xfffb
}

// cluster writes one character with its combining marks. Terminals measure either rune by rune or cluster by cluster; a
// cluster for which the two differ is shown as a replacement, so that no row can be longer than it seems.
func (w *writer) cluster(s string) int {
	c, n := base(s)
	byRune := StringWidth(c)
	first, _ := utf8.DecodeRuneInString(c)
	if byRune == 0 || byRune != ansi.StringWidth(c) || byRune != ansi.StringWidthWc(c) || !unicode.IsPrint(first) {
		w.WriteRune(Replacement)
		return n
	}
	w.WriteString(c)
	return n
}

// base cuts one base rune and at most maxMarks marks from the start of s; n counts the marks beyond that too.
func base(s string) (c string, n int) {
	_, n = utf8.DecodeRuneInString(s)
	keep, marks := n, 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !unicode.In(r, unicode.Mn, unicode.Me) && !hidden(r) || !utf8.FullRuneInString(s[n:]) {
			break
		}
		n += size
		if marks++; marks <= maxMarks && !hidden(r) && Width(r) == 0 && keep == n-size {
			keep = n
		}
	}
	return s[:keep], n
}
