package wire

import (
	"encoding/json"
	"fmt"
)

// scanner is a pull parser for JSON: the caller asks for a type and gets a value, or "absent" if the next value has
// another type. The first syntax error ends the input: at moves to the end, and nothing more is found.
type scanner struct {
	input     []byte
	at        int
	first     bool // no member of the innermost object or array has been read
	depth     int
	problem   string // first syntax error
	problemAt int    // byte offset of it
}

func (s *scanner) reset(b []byte) {
	*s = scanner{input: b}
}

func (s *scanner) fail(problem string) {
	if s.problem == "" {
		s.problem, s.problemAt = problem, s.at
	}
	s.at = len(s.input)
}

func (s *scanner) err() error {
	if s.problem == "" {
		return nil
	}
	return fmt.Errorf("%w: %s at byte %d", ErrMalformed, s.problem, s.problemAt)
}

// peek returns the next character that is not white space; 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.input) {
		c := s.input[s.at]
		if c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		s.at++
	}
	return 0
}

// open enters the object or array that begins here, or else skips the next value.
func (s *scanner) open(bracket byte) bool {
	if s.peek() != bracket {
		s.skip()
		return false
	}
	if s.depth++; s.depth > MaxDepth {
		s.fail("nested too deeply")
		return false
	}
	s.at++
	s.first = true
	return true
}

// more reports whether another member follows, and leaves the object or array if not.
func (s *scanner) more(bracket byte) bool {
	c := s.peek()
	switch {
	case c == bracket:
		s.at++
		s.depth--
		s.first = false
		return false
	case s.first:
		s.first = false
	case c == ',':
		s.at++
		c = s.peek()
	default:
		s.fail("expected a comma")
		return false
	}
	if c == 0 || c == ',' || c == bracket {
		s.fail("expected a value")
		return false
	}
	return true
}

// key reads a member's name and the colon after it. The result is valid until the next string is read.
func (s *scanner) key() []byte {
	if s.peek() != '"' {
		s.fail("expected a name")
		return nil
	}
	name := s.quoted()
	if s.peek() != ':' {
		s.fail("expected a colon")
		return nil
	}
	s.at++
	return name
}

// str reads a string, valid until the next one is read; nil for values of other types. Invalid UTF-8 is returned as it
// is.
func (s *scanner) str() []byte {
	if s.peek() != '"' {
		s.skip()
		return nil
	}
	return s.quoted()
}

// quoted reads the string that begins here.
func (s *scanner) quoted() []byte {
	from := s.at + 1
	for i := from; i < len(s.input); i++ {
		switch c := s.input[i]; {
		case c == '"':
			s.at = i + 1
			return s.input[from:i]
		case c == '\\':
			return s.escaped(from, i)
		case c < ' ':
			s.at = i
			s.fail("control character in a string")
			return nil
		}
	}
	s.fail("unterminated string")
	return nil
}

// escaped reads the string that begins before from and has its first backslash at i.
func (s *scanner) escaped(from, i int) []byte {
	for ; i < len(s.input); i++ {
		switch s.input[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal(s.input[from-1:i+1], &text); err != nil {
				s.fail("malformed string")
			}
			s.at = max(s.at, i+1)
			return []byte(text)
		}
	}
	s.fail("unterminated string")
	return nil
}

// boolean reads true or false; anything else is false.
func (s *scanner) boolean() bool {
	if s.peek() != 't' {
		s.skip()
		return false
	}
	return s.literal("true")
}

func (s *scanner) literal(word string) bool {
	if len(s.input)-s.at < len(word) || string(s.input[s.at:s.at+len(word)]) != word {
		s.fail("unknown word")
		return false
	}
	s.at += len(word)
	return true
}

// skip skips a value of any type.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '"':
		s.quoted()
	case c == '{':
		if s.open('{') {
			for s.more('}') {
				s.key()
				s.skip()
			}
		}
	case c == '[':
		if s.open('[') {
			for s.more(']') {
				s.skip()
			}
		}
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	default:
		s.float()
	}
}
