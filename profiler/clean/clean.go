// Package clean makes text from outside (tokens, prompts, model names, log lines, error bodies) safe to show and safe
// to put into documents and errors. Its output is valid UTF-8 without control characters, escape sequences, or
// characters that reorder or hide text. Only this package decides which characters these are.
package clean

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Replacement replaces each character, invalid byte or escape sequence that cannot be shown.
const Replacement = utf8.RuneError

// MaxName is the longest name from outside that appears in an error, in characters.
const MaxName = 100

// MaxMessage is the longest message from outside that appears in an error, in characters.
const MaxMessage = 300

// ellipsis marks truncated text.
const ellipsis = "…"

// Safe reports whether a character can be shown: it is not a control character, is visible, and does not change the
// order of the text around it. Tabs and newlines are control characters.
func Safe(r rune) bool {
	if r < 0x7f {
		return r >= ' '
	}
	return r >= 0xa0 && !reorders(r) && !hidden(r) && utf8.ValidRune(r)
}

// reorders reports whether r is a bidirectional control or a separator that some terminals treat as a line end.
func reorders(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xfff9 && r <= 0xfffb
}

// hidden reports whether r has no glyph and changes how other characters look: formats, joiners, fillers, variation
// selectors, tags.
func hidden(r rune) bool {
	switch {
	case r == 0xad, r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return r >= 0x300 && unicode.Is(unicode.Cf, r)
}

// Line returns s as one line: newlines and tabs become spaces. It drops hidden characters and replaces all others that
// are not Safe by Replacement.
func Line(s string) string { return clean(s, false) }

// Text cleans text of several lines: like Line, but it keeps newlines (CR LF counts as one) and tabs.
func Text(s string) string { return clean(s, true) }

// Cut returns Line of the first most characters of s, with an ellipsis if s is longer.
func Cut(s string, most int) string {
	head, whole := prefix(s, most)
	line := Line(head)
	if whole {
		return line
	}
	return line + ellipsis
}

// Name returns a name from outside for an error: one line of at most MaxName characters.
func Name(s string) string { return Cut(s, MaxName) }

// Quote returns a name from outside quoted as by %q, truncated to MaxName characters.
func Quote(s string) string {
	head, whole := prefix(s, MaxName)
	quoted := Line(strconv.Quote(head)) // Quote keeps selectors and fillers
	if whole {
		return quoted
	}
	return quoted + ellipsis
}

// Error returns err as one line of at most MaxMessage characters. Use it for errors of libraries that quote their
// input.
func Error(err error) error { return shortError{err} }

type shortError struct{ err error }

// Error implements error.
func (b shortError) Error() string { return Cut(b.err.Error(), MaxMessage) }

// Unwrap returns the full error.
func (b shortError) Unwrap() error { return b.err }

// prefix returns the first most characters of s, and whether that is all of s.
func prefix(s string, most int) (head string, whole bool) {
	for i := range s {
		if most == 0 {
			return s[:i], false
		}
		most--
	}
	return s, true
}

// clean returns s itself if it is safe already, which is the common case.
func clean(s string, lines bool) string {
	i := safePrefix(s, lines)
	if i == len(s) {
		return s
	}
	w := cleaner{lines: lines}
	w.Grow(len(s) + 16)
	for i > 0 || s != "" {
		w.WriteString(s[:i])
		if s = s[i:]; s == "" {
			break
		}
		s = s[w.next(s):]
		i = safePrefix(s, lines)
	}
	return w.String()
}

// safePrefix returns the length of the longest prefix of s that needs no change.
func safePrefix(s string, lines bool) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if !Safe(rune(c)) && !(lines && (c == '\n' || c == '\t')) {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !Safe(r) {
			return i
		}
		i += n
	}
	return len(s)
}

// cleaner builds the clean text. A unit is a character, an invalid byte or a whole escape sequence.
type cleaner struct {
	strings.Builder
	lines bool // keep newlines and tabs
}

// next writes the replacement of the unsafe unit at the start of s and returns the length of the unit.
func (w *cleaner) next(s string) int {
	if c := s[0]; c < 0x20 || c == 0x7f {
		return w.control(s)
	}
	if n := c1Length(s); n > 0 {
		return w.escapeSequence(s, n, s[n-1]&0x1f|0x40)
	}
	r, n := utf8.DecodeRuneInString(s)
	if !hidden(r) || reorders(r) {
		w.WriteRune(Replacement)
	}
	return n
}

// control handles the C0 controls: layout, escape sequences, and the rest, which become Replacement.
func (w *cleaner) control(s string) int {
	switch s[0] {
	case '\n':
		return w.newline(1)
	case '\r':
		if len(s) > 1 && s[1] == '\n' {
			return w.newline(2)
		}
		return w.newline(1)
	case '\t':
		w.WriteByte(' ')
		return 1
	case 0x1b:
		if len(s) > 1 && s[1] >= 0x20 && s[1] < 0x7f {
			return w.escapeSequence(s, 2, s[1])
		}
	}
	w.WriteRune(Replacement)
	return 1
}

func (w *cleaner) newline(n int) int {
	if w.lines {
		w.WriteByte('\n')
	} else {
		w.WriteByte(' ')
	}
	return n
}

// c1Length returns the length of an 8-bit control at the start of s, 0 if absent: the bare byte 0x80 to 0x9f
// outside UTF-8, or U+0080 to U+009F.
func c1Length(s string) int {
	if s[0] >= 0x80 && s[0] < 0xa0 {
		return 1
	}
	if len(s) > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 {
		return 2
	}
	return 0
}

// maxSequence is the longest escape sequence without an end that is followed, in bytes, so that it cannot swallow the
// text after it.
const maxSequence = 256

// escapeSequence writes one Replacement for an escape sequence and returns its length. intro is the byte after ESC in
// the 7-bit form; the introducer ends at s[lead].
func (w *cleaner) escapeSequence(s string, lead int, intro byte) int {
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

// parameters returns the length of the parameter and intermediate bytes including the final byte, which is final or
// above; 0 if there is no final byte.
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

// stringControl returns the length of an OSC, DCS, SOS, PM or APC string including its end (BEL, ST, 8-bit ST); 0 if it
// has no end.
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
