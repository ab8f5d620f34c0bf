// Package prom reads metrics in the text form of Prometheus, of version 0.0.4 and of OpenMetrics, line by line and in bounded memory. It looks at no
// more of a line than is asked for, since most lines of a server are about something else.
package prom

import (
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line that is read, in bytes. Longer ones are passed over and counted.
const MaxLine = 64 << 10

// Scanner goes through the samples of a text. What it hands out holds until the next call of Next.
type Scanner struct {
	r          io.Reader
	buf        []byte
	start, end int // of what was read and not looked at
	err        error
	skip       bool // until the end of a line that is too long

	name, labels, rest []byte
	garbage, samples   int
}

// NewScanner scans what r reads.
func NewScanner(r io.Reader) *Scanner { return &Scanner{r: r, buf: make([]byte, MaxLine)} }

// Reset begins with another text, with the memory of the one before.
func (s *Scanner) Reset(r io.Reader) { *s = Scanner{r: r, buf: s.buf} }

// Next goes to the next sample; false at the end, or with an error.
func (s *Scanner) Next() bool {
	for {
		line, ok := s.line()
		if !ok {
			return false
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if s.split(line) {
			s.samples++
			return true
		}
		s.garbage++
	}
}

// Err is the error that ended the text, nil at its end.
func (s *Scanner) Err() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// Garbage is how many lines made no sense or were too long, Samples how many made some.
func (s *Scanner) Garbage() int { return s.garbage }

// Samples is the number of samples so far.
func (s *Scanner) Samples() int { return s.samples }

// Name is the name of the sample.
func (s *Scanner) Name() []byte { return s.name }

// Labels are those of the sample.
func (s *Scanner) Labels() Labels { return s.labels }

// Value is the value of the sample; false if it is no number.
func (s *Scanner) Value() (float64, bool) {
	v, ok := number(s.rest)
	if !ok {
		s.garbage++
	}
	return v, ok
}

// line is the next line, without white space around it.
func (s *Scanner) line() ([]byte, bool) {
	for {
		if i := bytes.IndexByte(s.buf[s.start:s.end], '\n'); i >= 0 {
			line := s.buf[s.start : s.start+i]
			s.start += i + 1
			if s.skip {
				s.skip = false
				continue
			}
			return trim(line), true
		}
		if s.err != nil {
			line := s.buf[s.start:s.end]
			s.start = s.end
			if s.skip || len(line) == 0 || !errors.Is(s.err, io.EOF) { // what broke off may be half a number
				return nil, false
			}
			return trim(line), true
		}
		s.fill()
	}
}

// fill reads on, behind what was not looked at yet.
func (s *Scanner) fill() {
	if s.skip {
		s.start = s.end
	}
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	if s.end == len(s.buf) { // one line and no end of it
		s.garbage++
		s.skip, s.end = true, 0
	}
	for range 100 { // readers may return nothing, though not for ever
		var n int
		n, s.err = s.r.Read(s.buf[s.end:])
		s.end += n
		if n > 0 || s.err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

func trim(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\r' || line[len(line)-1] == ' ') {
		line = line[:len(line)-1]
	}
	for len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		line = line[1:]
	}
	return line
}

// split finds name, labels and value of a line.
func (s *Scanner) split(line []byte) bool {
	n := 0
	for n < len(line) && nameByte[line[n]] {
		n++
	}
	if n == 0 || n == len(line) {
		return false
	}
	s.name, s.labels, s.rest = line[:n], nil, line[n:]
	if line[n] != '{' {
		return line[n] == ' ' || line[n] == '\t'
	}
	end := closing(line[n:])
	if end < 0 {
		return false
	}
	s.labels, s.rest = line[n+1:n+end], line[n+end+1:]
	return true
}

var quote = []byte{'"'}

// closing is where the brace that opens b is closed, -1 if it is not. Braces in quotes are none.
func closing(b []byte) int {
	if i := bytes.IndexByte(b, '}'); i < 0 || bytes.IndexByte(b[:i], '\\') < 0 && bytes.Count(b[:i], quote)%2 == 0 {
		return i // as nearly always: no string goes on here, and none has quotes in it
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '}':
			return i
		case '"':
			n := quoted(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// quoted is the length of the string that b begins with, its quotes counted; -1 if it has no end.
func quoted(b []byte) int {
	for i := 1; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		i++
		if escapes%2 == 0 {
			return i
		}
	}
	return -1
}

// nameByte are the bytes that names have.
var nameByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':'
	}
	return t
}()
