package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// preTokenizer splits text into words for a byte-level vocabulary, with related settings. Its regular expressions are those of the tokenizers' authors; the first alternative
// that matches wins:
//
//	GPT-2           's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//	Qwen2, Llama 3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type preTokenizer struct {
	digits     int  // maximum number of digits in a word, for the Qwen2 and Llama 3 expression; 0 for GPT-2's
	wholeWords bool // a word that is a token is used directly, without merges
	addBOS     bool
}

// preTokenizers lists the supported values of tokenizer.ggml.pre.
var preTokenizers = map[string]preTokenizer{
	"gpt-2":            {},
	"qwen2":            {digits: 1},
	"deepseek-r1-qwen": {digits: 1},
	"llama-bpe":        {digits: 3, wholeWords: true, addBOS: true},
	"llama3":           {digits: 3, wholeWords: true, addBOS: true},
	"llama-v3":         {digits: 3, wholeWords: true, addBOS: true},
}

func preTokenizerNames() string {
	return strings.Join(slices.Sorted(maps.Keys(preTokenizers)), ", ")
}

// class is a character class of the regular expressions.
type class uint8

const (
	other  class = iota // [^\s\p{L}\p{N}]
	letter              // \p{L}
	number              // \p{N}
	space               // \s
	end                 // of the text
)

var asciiClasses = func() (c [utf8.RuneSelf]class) {
	for r := range c {
		c[r] = classOf(rune(r))
	}
	return c
}()

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r), r >= 0x2ebf0 && r <= 0x2ee5d: // CJK Extension I, in llama.cpp's tables but not yet in Go's
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// classAt returns the class of the character at s[i:] and its length in bytes. A byte that is not valid UTF-8 counts as
// a character of class other.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return end, 0
	}
	if s[i] < utf8.RuneSelf {
		return asciiClasses[s[i]], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classOf(r), n
}

// run returns the end of the characters of class c from s[i:] on, at most limit of them.
func run(s string, i int, c class, limit int) int {
	for ; limit > 0; limit-- {
		got, n := classAt(s, i)
		if got != c {
			break
		}
		i += n
	}
	return i
}

// next returns the length of the first word of s, which is not empty.
func (p *preTokenizer) next(s string) int {
	if p.digits == 0 {
		return nextGPT2(s)
	}
	return nextTiktoken(s, p.digits)
}

func nextGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	at := 0
	if s[0] == ' ' {
		at = 1
	}
	switch c, _ := classAt(s, at); c {
	case letter, number, other:
		return run(s, at, c, len(s))
	}
	return blanks(s)
}

func nextTiktoken(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	first, n := classAt(s, 0)
	second, _ := classAt(s, n)
	newline := s[0] == '\r' || s[0] == '\n'
	switch {
	case first == letter, first != number && !newline && second == letter:
		return run(s, n, letter, len(s))
	case first == number:
		return run(s, 0, number, digits)
	case first == other, s[0] == ' ' && second == other:
		return newlines(s, run(s, n, other, len(s)))
	}
	return lines(s)
}

// contraction returns the length of an English contraction at the start of s, 0 if none exists. With fold set, case
// is ignored.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(b byte) byte {
		if fold && b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch a := lower(s[1]); a {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if len(s) > 2 && (a == 'l' && lower(s[2]) == 'l' || a != 'l' && lower(s[2]) == 'e') {
			return 3
		}
	}
	return 0
}

// newlines returns the end of the line breaks from s[i:] on.
func newlines(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// lines matches \s*[\r\n]+, or the expression of blanks.
func lines(s string) int {
	if i := strings.LastIndexAny(s[:run(s, 0, space, len(s))], "\r\n"); i >= 0 {
		return i + 1
	}
	return blanks(s)
}

// blanks matches \s+(?!\S)|\s+: white space without its last character if a word follows (the word includes that
// character), unless it is the only one.
func blanks(s string) int {
	n := run(s, 0, space, len(s))
	if n == len(s) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(s[:n])
	if n > last {
		return n - last
	}
	return n
}
