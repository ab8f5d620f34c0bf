package jinja

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the type of a token.
type kind uint8

const (
	end kind = iota
	data
	printBegin
	printEnd
	blockBegin
	blockEnd
	identifier
	integer
	float
	quoted
	operator
)

// token is a piece of a template: its source text, or for quoted its value.
type token struct {
	kind kind
	text string
	line int
}

// lexer splits a template into tokens, with trim_blocks and lstrip_blocks: the line break after a block tag and the
// blanks before it on its line are not output.
type lexer struct {
	src    string
	at     int
	line   int
	tokens []token
	fresh  bool   // the next text is at the start of a line
	open   []byte // open brackets
}

// lex splits a whole template. A line break at the very end is not output.
func lex(src string) []token {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, fresh: true}
	for l.at < len(l.src) {
		l.outside()
	}
	l.add(end, "")
	return l.tokens
}

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// take advances over n bytes and returns them.
func (l *lexer) take(n int) string {
	s := l.src[l.at : l.at+n]
	l.line += strings.Count(s, "\n")
	l.at += n
	if n > 0 {
		l.fresh = s[n-1] == '\n'
	}
	return s
}

var rawBegin, rawEnd = regexp.MustCompile(`^{%[-+]?\s*raw\s*(-?)%}`), regexp.MustCompile(`{%([-+]?)\s*endraw\s*([-+]?)%}`)

// outside reads text up to the next tag, and the tag.
func (l *lexer) outside() {
	rest := l.src[l.at:]
	n := next(rest)
	if n < 0 {
		l.add(data, l.take(len(rest)))
		return
	}
	text, mode := rest[:n], rest[n+1]
	sign := byte(0)
	if n+2 < len(rest) && (rest[n+2] == '-' || rest[n+2] == '+') {
		sign = rest[n+2]
	}
	startOfLine := l.fresh
	raw := rawBegin.FindString(rest[n:])
	l.take(n)
	l.text(text, sign, mode, startOfLine)
	if raw != "" {
		l.raw(raw)
		return
	}
	l.take(2)
	if sign != 0 {
		l.take(1)
	}
	switch mode {
	case '#':
		l.comment()
	case '%':
		l.add(blockBegin, "")
		l.inside(blockEnd, "%}")
	default:
		l.add(printBegin, "")
		l.inside(printEnd, "}}")
	}
}

// next returns the position of the next tag, or a negative number if none exists.
func next(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		if strings.IndexByte("{%#", s[from+i+1]) >= 0 {
			return from + i
		}
		from += i + 1
	}
}

// text adds the text before a tag, without the blanks that the tag strips.
func (l *lexer) text(s string, sign, mode byte, startOfLine bool) {
	switch {
	case sign == '-':
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	case sign != '+' && mode != '{':
		line := strings.LastIndexByte(s, '\n') + 1
		if (line > 0 || startOfLine) && strings.TrimSpace(s[line:]) == "" {
			s = s[:line]
		}
	}
	if s != "" {
		l.add(data, s)
	}
}

// raw reads a raw block, whose first tag has been read. Its content is output unchanged.
func (l *lexer) raw(tag string) {
	l.take(len(tag))
	rest := l.src[l.at:]
	found := rawEnd.FindStringSubmatchIndex(rest)
	if found == nil {
		fail("line %d: a raw block has no end", l.line)
	}
	text := rest[:found[0]]
	if strings.HasSuffix(tag, "-%}") {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	sign := byte(0)
	if found[2] < found[3] {
		sign = rest[found[2]]
	}
	l.take(found[0])
	l.text(text, sign, '%', false)
	l.take(found[1] - found[0])
	l.after(rest[found[4]:found[5]])
}

// after skips what follows a block's tag and is not output.
func (l *lexer) after(sign string) {
	rest := l.src[l.at:]
	switch {
	case sign == "-":
		l.take(len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)))
	case sign == "" && strings.HasPrefix(rest, "\n"):
		l.take(1)
	}
}

func (l *lexer) comment() {
	n := strings.Index(l.src[l.at:], "#}")
	if n < 0 {
		fail("line %d: a comment has no end", l.line)
	}
	sign := ""
	if n > 0 && strings.IndexByte("-+", l.src[l.at+n-1]) >= 0 {
		sign = l.src[l.at+n-1 : l.at+n]
	}
	l.take(n + 2)
	l.after(sign)
}

// inside reads the tokens of a tag and its end.
func (l *lexer) inside(k kind, closing string) {
	l.open = l.open[:0]
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		if len(l.open) == 0 {
			for _, sign := range []string{"", "-", "+"} {
				if !strings.HasPrefix(rest, sign+closing) || sign == "+" && k == printEnd {
					continue
				}
				l.add(k, "")
				l.take(len(sign) + len(closing))
				if k == blockEnd || sign == "-" {
					l.after(sign)
				}
				return
			}
		}
		l.expression(rest)
	}
	fail("line %d: a tag has no end", l.line)
}

var operators = []string{
	"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}

// expression reads a token of an expression.
func (l *lexer) expression(rest string) {
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsSpace(r):
		l.take(prefix(rest, unicode.IsSpace))
	case r == '_' || unicode.IsLetter(r):
		text := rest[:prefix(rest, isNamePart)]
		l.add(identifier, text)
		l.take(len(text))
	case r >= '0' && r <= '9':
		l.number(rest)
	case r == '\'' || r == '"':
		n := closing(rest)
		if n < 0 {
			fail("line %d: a string has no end", l.line)
		}
		l.add(quoted, unquote(rest[1:n], l.line))
		l.take(n + 1)
	default:
		l.operator(rest, r)
	}
}

// prefix returns the length of the longest prefix of s with characters of a kind.
func prefix(s string, is func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !is(r) }); n >= 0 {
		return n
	}
	return len(s)
}

func isNamePart(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// closing returns the position of the closing quote for the quote at the start of s, or a negative number.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i
		}
	}
	return -1
}

func (l *lexer) operator(rest string, r rune) {
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.balance(op)
			l.add(operator, op)
			l.take(len(op))
			return
		}
	}
	fail("line %d: unexpected character %q", l.line, r)
}

// number reads an integer or a float in Python's syntax.
func (l *lexer) number(rest string) {
	digits := func(s string) int { return prefix(s, func(r rune) bool { return r >= '0' && r <= '9' || r == '_' }) }
	kind, n := integer, digits(rest)
	switch {
	case n == 1 && len(rest) > 2 && rest[0] == '0' && strings.IndexByte("xXbBoO", rest[1]) >= 0:
		n = 2 + prefix(rest[2:], isNamePart)
	case l.src[l.at-1] == '.': // as in a.0.1
	default:
		if tail := rest[n:]; len(tail) > 1 && tail[0] == '.' && digits(tail[1:]) > 0 {
			kind, n = float, n+1+digits(tail[1:])
		}
		if tail := rest[n:]; len(tail) > 1 && (tail[0] == 'e' || tail[0] == 'E') {
			sign := 1
			if tail[1] == '-' || tail[1] == '+' {
				sign = 2
			}
			if more := digits(tail[sign:]); more > 0 {
				kind, n = float, n+sign+more
			}
		}
	}
	l.add(kind, strings.ReplaceAll(rest[:n], "_", ""))
	l.take(n)
}

// balance tracks open brackets: a tag does not end within them.
func (l *lexer) balance(op string) {
	pairs := map[string]byte{")": '(', "]": '[', "}": '{'}
	switch op {
	case "(", "[", "{":
		l.open = append(l.open, op[0])
	case ")", "]", "}":
		if len(l.open) == 0 || l.open[len(l.open)-1] != pairs[op] {
			fail("line %d: unexpected %q", l.line, op)
		}
		l.open = l.open[:len(l.open)-1]
	}
}

// unquote returns the value of a Python string literal.
func unquote(s string, line int) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' || len(s) < 2 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		s = escape(&b, s, line)
	}
	return b.String()
}

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]string{
	'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// escape writes the value of the escape at the start of s, and returns the rest. An invalid escape is kept unchanged.
func escape(b *strings.Builder, s string, line int) string {
	if simple, ok := simpleEscapes[s[1]]; ok {
		b.WriteString(simple)
		return s[2:]
	}
	digits, base, from := 0, 16, 2
	switch c := s[1]; {
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c >= '0' && c <= '7':
		base, from = 8, 1
		for digits = 1; digits < 3 && from+digits < len(s) && s[from+digits] >= '0' && s[from+digits] <= '7'; digits++ {
		}
	default:
		b.WriteString(s[:2])
		return s[2:]
	}
	if len(s) < from+digits {
		fail("line %d: the escape %q is cut off", line, s)
	}
	r, err := strconv.ParseUint(s[from:from+digits], base, 32)
	if err != nil || r > unicode.MaxRune {
		fail("line %d: %q is no escape", line, s[:from+digits])
	}
	b.WriteRune(rune(r))
	return s[from+digits:]
}
