package wire

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// key appends a member's name, which must need no escapes, after a comma unless the object is empty.
func key(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// anyKey appends a member's name that may need escapes.
func anyKey(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendString(dst, name), ':')
}

// A number outside the plausible bounds is written as the nearest bound: the decoder refuses a whole line for it. Requests and calls are
// names, and stay as they are.

func appendInt(dst []byte, v int64) []byte {
	return strconv.AppendInt(dst, min(max(v, -event.MaxNumber), event.MaxNumber), 10)
}

func appendCount(dst []byte, v uint64) []byte {
	return strconv.AppendUint(dst, min(v, event.MaxNumber), 10)
}

func appendTime(dst []byte, t event.Time) []byte {
	return strconv.AppendInt(dst, int64(bounded(t)), 10)
}

// bounded is t, or the nearest time that is plausible.
func bounded(t event.Time) event.Time { return min(max(t, -event.MaxTime), event.MaxTime) }

// number appends a member unless it is 0, which means unknown.
func number[T ~int | ~int32 | ~int64](dst []byte, name string, v T) []byte {
	if v == 0 {
		return dst
	}
	return appendInt(key(dst, name), int64(v))
}

// identifier appends the number of a request unless it is 0, which means none.
func identifier(dst []byte, name string, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return strconv.AppendUint(key(dst, name), v, 10)
}

// moment appends a time unless it is 0, which stands for unknown.
func moment(dst []byte, name string, t event.Time) []byte {
	if t == 0 {
		return dst
	}
	return appendTime(key(dst, name), t)
}

// word appends a member unless it is empty.
func word(dst []byte, name, v string) []byte {
	if v == "" {
		return dst
	}
	return appendString(key(dst, name), v)
}

// flag appends a member if it is true.
func flag(dst []byte, name string, v bool) []byte {
	if !v {
		return dst
	}
	return append(key(dst, name), "true"...)
}

// appendFloat appends the shortest decimal that reads as v, or null for NaN and infinities.
func appendFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, min(max(v, -event.MaxNumber), event.MaxNumber), 'g', -1, bits)
}

// appendUints appends an array of counts.
func appendUints[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []byte, list ...T) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		dst = appendCount(appendComma(dst, i), uint64(v))
	}
	return append(dst, ']')
}

// appendString appends a string, truncated to MaxString; invalid UTF-8 is replaced.
func appendString(dst []byte, s string) []byte { return appendQuoted(dst, cut(s)) }

// appendQuoted appends a string of any length. It replaces invalid UTF-8 and escapes characters that are unsafe on a
// terminal, where people read these lines too.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			bad := r == utf8.RuneError && n == 1
			if !bad && clean.Safe(r) {
				i += n
				continue
			}
			dst = append(dst, s[from:i]...)
			if bad {
				dst = append(dst, "\ufffd"...)
			} else {
				dst = clean.AppendEscape(dst, r)
			}
			i += n - 1
		} else {
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, c)
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return clean.AppendEscape(dst, rune(c))
}

// cut truncates s to MaxString bytes without splitting a character.
func cut[T string | []byte](s T) T { return cutAt(s, MaxString) }

// cutAt truncates s to limit bytes without splitting a character.
func cutAt[T string | []byte](s T, limit int) T {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// appendText appends a model's text, truncated to MaxString: a string, or an array of bytes if it is not UTF-8.
func appendText(dst []byte, s string) []byte { return appendUncutText(dst, cut(s)) }

// appendUncutText appends a model's text of any length.
func appendUncutText(dst []byte, s string) []byte {
	if utf8.ValidString(s) {
		return appendQuoted(dst, s)
	}
	dst = append(dst, '[')
	for i := range len(s) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(s[i]), 10)
	}
	return append(dst, ']')
}

// appendReading appends a member with its origin, or the reason for its absence. It omits readings that are not
// reported.
func appendReading(dst []byte, name string, r event.Reading) []byte {
	switch {
	case r.Origin == event.NotReported || r.Origin > event.Derived:
		return dst
	case !r.OK():
		return appendString(key(dst, name), r.Absence())
	case r.Origin == event.Measured:
		return appendFloat(key(dst, name), r.V, 64)
	}
	dst = append(key(dst, name), '[')
	dst = appendFloat(dst, r.V, 64)
	dst = append(dst, ',')
	return append(appendString(dst, r.Origin.String()), ']')
}

// appendComma appends what separates element i of an array from the one before.
func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// appendArray appends an array whose elements value appends.
func appendArray[T any](dst []byte, list []T, value func(dst []byte, v T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		dst = value(appendComma(dst, i), v)
	}
	return append(dst, ']')
}
