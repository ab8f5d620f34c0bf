// Package prom parses metrics in the Prometheus text format, version 0.0.4 and OpenMetrics, line by line and in bounded
// memory. It parses only the requested parts of a line, because most lines of a server are not needed.
package prom

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// MaxLine is the longest accepted line, in bytes. Longer lines are skipped and counted as malformed.
const MaxLine = 64 << 10

// Scanner iterates over the samples of a text. Returned slices are valid until the next call of Next.
type Scanner struct {
	r          io.Reader
	buf        []byte
	start, end int // unparsed part of buf
	err        error
	skipLine   bool // skip to the end of a line that is too long

	name, labels, rest []byte
	malformed, samples int
}

// NewScanner returns a scanner for the text that r reads.
func NewScanner(r io.Reader) *Scanner { return &Scanner{r: r, buf: make([]byte, MaxLine)} }

// Reset starts another text and reuses the buffer.
func (s *Scanner) Reset(r io.Reader) { *s = Scanner{r: r, buf: s.buf} }

// Next advances to the next sample; false at the end or on an error.
func (s *Scanner) Next() bool {
	for {
		line, ok := s.line()
		switch {
		case !ok:
			return false
		case len(line) == 0 || line[0] == '#':
		case s.parse(line):
			s.samples++
			return true
		default:
			s.malformed++
		}
	}
}

// Err returns the error that ended the text; nil at its end.
func (s *Scanner) Err() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// Malformed returns the number of lines that were invalid, too long or had an implausible value.
func (s *Scanner) Malformed() int { return s.malformed }

// Samples returns the number of samples so far.
func (s *Scanner) Samples() int { return s.samples }

// Name returns the name of the sample.
func (s *Scanner) Name() []byte { return s.name }

// Labels returns the labels of the sample.
func (s *Scanner) Labels() Labels { return s.labels }

// Value returns the value of the sample; false if it is not a plausible number. NaN, the value of a summary without
// samples, does not count as malformed.
func (s *Scanner) Value() (float64, bool) {
	v, ok := parseNumber(s.rest)
	if ok && event.Plausible(v) {
		return v, true
	}
	if !math.IsNaN(v) || !ok {
		s.malformed++
	}
	return 0, false
}

// line returns the next line without surrounding white space.
func (s *Scanner) line() ([]byte, bool) {
	for {
		if i := bytes.IndexByte(s.buf[s.start:s.end], '\n'); i >= 0 {
			line := s.buf[s.start : s.start+i]
			s.start += i + 1
			if s.skipLine {
				s.skipLine = false
				continue
			}
			return trim(line), true
		}
		if s.err != nil {
			line := s.buf[s.start:s.end]
			s.start = s.end
			if s.skipLine || len(line) == 0 || !errors.Is(s.err, io.EOF) { // a truncated line may end within a number
				return nil, false
			}
			return trim(line), true
		}
		s.fill()
	}
}

// fill reads more data behind the unparsed part.
func (s *Scanner) fill() {
	if s.skipLine {
		s.start = s.end
	}
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	if s.end == len(s.buf) { // the line does not fit into the buffer
		s.malformed++
		s.skipLine, s.end = true, 0
	}
	for range 100 { // a reader may return no data, but not forever
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

// parse splits a line into name, labels and value. It reports false for labels that are not all name="value".
func (s *Scanner) parse(line []byte) bool {
	n := 0
	for n < len(line) && isNameByte[line[n]] {
		n++
	}
	if n == 0 || n == len(line) {
		return false
	}
	s.name, s.labels, s.rest = line[:n], nil, line[n:]
	if line[n] != '{' {
		return line[n] == ' ' || line[n] == '\t'
	}
	labels := Labels(line[n+1:])
	for {
		if _, _, ok := labels.next(); !ok {
			break
		}
	}
	end := len(line) - len(bytes.TrimLeft(labels, ", "))
	if end == len(line) || line[end] != '}' {
		return false
	}
	s.labels, s.rest = line[n+1:end], line[end+1:]
	return true
}

// stringLen returns the length of the quoted string at the start of b, with its quotes; -1 if it is not closed.
func stringLen(b []byte) int {
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

// isNameByte marks the bytes allowed in names.
var isNameByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':' || c == '.' // of OpenTelemetry
	}
	return t
}()
