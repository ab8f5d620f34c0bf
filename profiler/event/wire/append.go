package wire

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// key appends a member's name, which needs no escapes; a comma goes before it unless the object has just been opened.
func key(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// number appends a member unless it is 0, which stands for unknown.
func number[T ~int | ~int32 | ~int64](dst []byte, name string, v T) []byte {
	if v == 0 {
		return dst
	}
	return strconv.AppendInt(key(dst, name), int64(v), 10)
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

// appendFloat appends the shortest number that reads as v, null for what is no number.
func appendFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

// appendUints appends an array of counts.
func appendUints[T ~uint16 | ~uint32 | ~uint64](dst []byte, list ...T) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(v), 10)
	}
	return append(dst, ']')
}

const hex = "0123456789abcdef"

// appendString appends a string, cut at MaxString; what is no UTF-8 in it is replaced.
func appendString(dst []byte, s string) []byte { return appendQuoted(dst, cut(s)) }

// appendQuoted appends a string of any length; what is no UTF-8 in it is replaced.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(dst, s[from:i]...)
			dst = append(dst, "\ufffd"...)
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
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// cut is s without what is over the limit, and without the half of a character that this would leave.
func cut[T string | []byte](s T) T { return cutAt(s, MaxString) }

// cutAt is cut with another limit, in bytes.
func cutAt[T string | []byte](s T, most int) T {
	if len(s) <= most {
		return s
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// appendText appends a model's text, cut at MaxString: a string, or its bytes as numbers where they are no UTF-8.
func appendText(dst []byte, s string) []byte { return appendWhole(dst, cut(s)) }

// appendWhole appends a model's text of any length.
func appendWhole(dst []byte, s string) []byte {
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

// reading appends a member unless it is not reported. Where a number comes from, and why there is none, is kept.
func reading(dst []byte, name string, r event.Reading) []byte {
	switch {
	case r.Origin == event.NotReported || r.Origin > event.Derived:
		return dst
	case !r.OK():
		return appendString(key(dst, name), r.Why())
	case r.Origin == event.Measured:
		return appendFloat(key(dst, name), r.V, 64)
	}
	dst = append(key(dst, name), '[')
	dst = appendFloat(dst, r.V, 64)
	dst = append(dst, ',')
	return append(appendString(dst, r.Origin.String()), ']')
}
