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

// appendText appends a model's text: a string, or an array of bytes if it is not UTF-8.
func appendText(dst []byte, s string) []byte {
	if utf8.ValidString(s) {
		return appendQuoted(dst, s)
	}
	return appendUints(dst, []byte(s)...)
}

// appendReading appends a number with its origin, or the reason for its absence; nothing if it is not reported.
func appendReading(dst []byte, r event.Reading) []byte {
	switch {
	case r.Origin == event.NotReported || r.Origin > event.Derived:
		return dst
	case !r.OK():
		return appendString(dst, r.Absence())
	case r.Origin == event.Measured:
		return appendFloat(dst, r.V, 64)
	}
	return appendNumber(dst, r)
}

// appendNumber appends a number with its origin.
func appendNumber(dst []byte, r event.Reading) []byte {
	dst = append(appendFloat(append(dst, '['), r.V, 64), ',')
	return append(appendString(dst, r.Origin.String()), ']')
}

// appendDrops appends the drops by kind.
func appendDrops(dst []byte, p *event.Drops) []byte {
	dst = append(dst, '{')
	for k, n := range p {
		if n > 0 {
			dst = appendCount(key(dst, event.Kind(k).String()), n)
		}
	}
	return append(dst, '}')
}

// appendSet appends an array of the names whose index is in a set.
func appendSet(dst []byte, names []string, has func(i int) bool) []byte {
	n := 0
	dst = append(dst, '[')
	for i, name := range names {
		if has(i) {
			dst = appendString(appendComma(dst, n), name)
			n++
		}
	}
	return append(dst, ']')
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
