package prom

import (
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// Labels are the labels of a sample, as they stand in the text.
type Labels []byte

// next cuts off the first label. Its value is as it stands between the quotes. ok is false at the end, and where something else stands.
func (l *Labels) next() (name, value []byte, ok bool) {
	b := []byte(*l)
	for len(b) > 0 && (b[0] == ',' || b[0] == ' ') {
		b = b[1:]
	}
	n := 0
	for n < len(b) && nameByte[b[n]] {
		n++
	}
	if n == 0 || n+1 >= len(b) || b[n] != '=' || b[n+1] != '"' {
		return nil, nil, false
	}
	end := quoted(b[n+1:])
	if end < 0 {
		return nil, nil, false
	}
	name, value = b[:n], b[n+2:n+end]
	*l = Labels(b[n+1+end:])
	return name, value, true
}

// Raw is the value of a label as it stands between the quotes, escapes and all; nil if there is none.
func (l Labels) Raw(want string) []byte {
	for {
		name, value, ok := l.next()
		if !ok {
			return nil
		}
		if string(name) == want {
			return value
		}
	}
}

// Get is the value of a label, "" if there is none.
func (l Labels) Get(want string) string {
	raw := string(l.Raw(want))
	if !strings.Contains(raw, `\`) {
		return raw
	}
	return unescape.Replace(raw)
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

var seed = maphash.MakeSeed()

// Key tells the labels from others, whatever order they stand in. It means nothing beyond this process. le is the upper end of a bucket as it stands
// in the label of that name, which does not count; nil if there is none.
func (l Labels) Key() (key uint64, le []byte) {
	for {
		name, value, ok := l.next()
		switch {
		case !ok:
			return key, le
		case string(name) == "le":
			le = value
		default:
			key += maphash.Bytes(seed, name)*0x9e3779b97f4a7c15 ^ maphash.Bytes(seed, value)
		}
	}
}

// Bound is the number that a label le holds, +Inf for the last bucket; false if it is none.
func Bound(le []byte) (float64, bool) {
	v, ok := number(le)
	return v, ok && !math.IsNaN(v)
}

// number reads the number that b begins with, which white space or the end follows.
func number(b []byte) (float64, bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	n := 0
	for n < len(b) && b[n] != ' ' && b[n] != '\t' {
		n++
	}
	if n == 0 || n > 64 {
		return 0, false
	}
	if v, ok := plain(b[:n]); ok {
		return v, true
	}
	for _, c := range b[:n] { // underscores and hexadecimals are Go's and not the format's
		if c == '_' || c == 'x' || c == 'X' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(&b[0], n), 64)
	return v, err == nil
}

// exact are powers of ten that are exact.
var exact = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// plain reads digits with or without a point, of 15 digits at most: quotients of exact numbers are rounded right.
func plain(b []byte) (float64, bool) {
	if len(b) > 16 {
		return 0, false
	}
	v, point := uint64(0), -1
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v*10 + uint64(c-'0')
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
	}
	digits := len(b)
	if point >= 0 {
		digits--
	}
	if digits == 0 || digits > 15 {
		return 0, false
	}
	if point < 0 {
		return float64(v), true
	}
	return float64(v) / exact[len(b)-1-point], true
}
