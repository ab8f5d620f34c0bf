package wire

import (
	"math"
	"strconv"
)

// signed reads a number as an integer: it truncates fractions and saturates. False if the next value is not a number.
func (s *scanner) signed() (int64, bool) {
	v, negative, ok := s.digits()
	switch {
	case !ok:
		f, ok := s.float()
		return truncateFloat(f), ok
	case v > math.MaxInt64 && negative:
		return math.MinInt64, true
	case v > math.MaxInt64:
		return math.MaxInt64, true
	case negative:
		return -int64(v), true
	}
	return int64(v), true
}

// unsigned reads a number as a count; false if the next value is not a number or negative.
func (s *scanner) unsigned() (uint64, bool) {
	v, negative, ok := s.digits()
	switch {
	case ok && negative && v > 0:
		return 0, false
	case ok:
		return v, true
	}
	f, ok := s.float()
	if f >= math.MaxUint64 {
		return math.MaxUint64, ok
	}
	return uint64(max(f, 0)), ok && f >= 0
}

// digits reads a number that consists of digits and fits 64 bits. It leaves any other number unread.
func (s *scanner) digits() (v uint64, negative, ok bool) {
	s.peek()
	i := s.at
	if i < len(s.input) && s.input[i] == '-' {
		negative = true
		i++
	}
	from := i
	for i < len(s.input) && s.input[i]-'0' <= 9 {
		if v > (math.MaxUint64-9)/10 {
			return 0, false, false
		}
		v = v*10 + uint64(s.input[i]-'0')
		i++
	}
	if i == from || !s.ends(i) {
		return 0, false, false
	}
	s.at = i
	return v, negative, true
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

// truncateFloat returns f without its fraction, saturating at the ends of int64.
func truncateFloat(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// float reads a number. False for null, NaN, infinities and values of other types.
func (s *scanner) float() (float64, bool) {
	switch s.peek() {
	case 0:
		s.fail("expected a value")
		return 0, false
	case 'n':
		s.literal("null")
		return 0, false
	case 'N':
		s.literal("NaN")
		return 0, false
	case 'I':
		s.literal("Infinity")
		return 0, false
	case '"', '{', '[', 't', 'f':
		s.skip()
		return 0, false
	}
	from := s.at
	if s.input[from] == '-' && from+1 < len(s.input) && s.input[from+1] == 'I' {
		s.at++
		s.literal("Infinity")
		return 0, false
	}
	for s.at < len(s.input) && !s.ends(s.at) {
		s.at++
	}
	word := s.input[from:s.at]
	f, err := strconv.ParseFloat(string(word), 64)
	if !decimal(word) || err != nil && (math.IsNaN(f) || !math.IsInf(f, 0)) {
		s.at = from
		s.fail("malformed number")
		return 0, false
	}
	return f, true
}

// decimal reports whether a word has only the characters of JSON numbers: strconv accepts more.
func decimal(word []byte) bool {
	for _, c := range word {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}
