package wire

import (
	"bytes"
	"math"
	"strconv"
)

// signed reads a number as an integer: it truncates fractions and saturates. False if the next value is not a number.
func (s *scanner) signed() (int64, bool) {
	v, negative, ok := s.integer()
	n := int64(min(v, math.MaxInt64))
	if negative {
		n = -n
	}
	return n, ok
}

// unsigned reads a number as a count; false if the next value is not a number or negative.
func (s *scanner) unsigned() (uint64, bool) {
	v, negative, ok := s.integer()
	if negative {
		return 0, false
	}
	return v, ok
}

// integer reads a number without its sign and fraction; false if the next value is not a number.
func (s *scanner) integer() (v uint64, negative, ok bool) {
	s.peek()
	i := s.at
	if i < len(s.input) && s.input[i] == '-' {
		negative = true
		i++
	}
	from := i
	for i < len(s.input) && s.input[i]-'0' <= 9 && v <= (math.MaxUint64-9)/10 {
		v = v*10 + uint64(s.input[i]-'0')
		i++
	}
	if i > from && s.ends(i) {
		s.at = i
		return v, negative && v > 0, true
	}
	f, ok := s.float()
	if math.Abs(f) >= math.MaxUint64 {
		return math.MaxUint64, f < 0, ok
	}
	return uint64(math.Abs(f)), f < 0, ok
}

// ends reports whether a number ends at i, rather than continue with more digits, a fraction or an exponent.
func (s *scanner) ends(i int) bool {
	if i == len(s.input) {
		return true
	}
	switch s.input[i] {
	case ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// float reads a number. False for null, NaN, infinities and values of other types.
func (s *scanner) float() (float64, bool) {
	switch c := s.peek(); c {
	case 0:
		s.fail("expected a value")
		return 0, false
	case '"', '{', '[', 't', 'f':
		s.skip()
		return 0, false
	case 'n', 'N', 'I', '-':
		for _, word := range [...]string{"null", "NaN", "Infinity", "-Infinity"} {
			if bytes.HasPrefix(s.input[s.at:], []byte(word)) {
				s.at += len(word)
				return 0, false
			}
		}
	}
	from := s.at
	for s.at < len(s.input) && !s.ends(s.at) {
		s.at++
	}
	word := s.input[from:s.at]
	f, err := strconv.ParseFloat(string(word), 64)
	if len(bytes.Trim(word, "0123456789.+-eE")) > 0 || err != nil && !math.IsInf(f, 0) { // strconv accepts more than JSON
		s.at = from
		s.fail("malformed number")
		return 0, false
	}
	return f, true
}
