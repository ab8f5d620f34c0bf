package answers

import (
	"unicode"
	"unicode/utf8"
)

// The kinds of characters that tokenizers separate.
const (
	space = iota
	letter
	digit
	other
)

// Pieces returns about how many tokens a text has at least: its words, numbers and runs of punctuation, and for scripts
// that do not separate words every second character. A text that is not empty has at least one.
func Pieces(text string) (n int) {
	last, wide := space, 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		kind := other
		switch {
		case unicode.IsSpace(r):
			kind = space
		case unicode.IsDigit(r):
			kind = digit
		case unicode.IsLetter(r):
			kind = letter
		}
		if wide++; kind != last || size < 3 { // of 3 and 4 bytes are the characters of scripts without spaces
			wide = 0
		}
		if kind != space && (kind != last || size >= 3 && wide%2 == 0) {
			n++
		}
		last = kind
	}
	return max(n, min(len(text), 1))
}
