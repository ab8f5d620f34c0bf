package prom

import (
	"bytes"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// Labels holds the labels of a sample as text. Those of a Scanner are well-formed.
type Labels []byte

// next removes the first label and returns its name and its value with escapes. ok is false at the end and at invalid
// text.
func (l *Labels) next() (name, value []byte, ok bool) {
	b := []byte(*l)
	for len(b) > 0 && (b[0] == ',' || b[0] == ' ') {
		b = b[1:]
	}
	n := 0
	for n < len(b) && isNameByte[b[n]] {
		n++
	}
	if n == 0 || n+1 >= len(b) || b[n] != '=' || b[n+1] != '"' {
		return nil, nil, false
	}
	end := stringLen(b[n+1:])
	if end < 0 {
		return nil, nil, false
	}
	name, value = b[:n], b[n+2:n+end]
	*l = Labels(b[n+1+end:])
	return name, value, true
}

// Raw returns the value of a label with its escapes; nil if there is no such label.
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

// Get returns the value of a label; "" if there is no such label.
func (l Labels) Get(want string) string {
	raw := string(l.Raw(want))
	if !strings.Contains(raw, `\`) {
		return raw
	}
	return unescape.Replace(raw)
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

var seed = maphash.MakeSeed()

// Hash returns a hash of a name, valid only in this process.
func Hash(name []byte) uint64 { return maphash.Bytes(seed, name) }

// Key returns a hash of the labels, independent of their order and valid only in this process: the sum of HashPair over
// them. le is the value of the label le (the upper bound of a bucket), which is not part of the hash; nil without such a
// label. An empty label is none, as in Prometheus.
func (l Labels) Key() (key uint64, le []byte) {
	for name, value := range l.All {
		switch {
		case string(name) == "le":
			le = value
		case len(value) > 0:
			key += HashPair(name, value)
		}
	}
	return key, le
}

// HashPair returns a hash of a label, valid only in this process.
func HashPair(name, value []byte) uint64 {
	return maphash.Bytes(seed, name)*0x9e3779b97f4a7c15 ^ maphash.Bytes(seed, value)
}

// All is an iterator over the names and the values, with their escapes.
func (l Labels) All(yield func(name, value []byte) bool) {
	for {
		name, value, ok := l.next()
		if !ok || !yield(name, value) {
			return
		}
	}
}

// CutBound returns the value of the label le and the labels before it, if it is plainly the last one; nil if it is not. The
// labels must be well-formed.
func (l Labels) CutBound() (before Labels, le []byte) {
	i := bytes.LastIndexByte(l, '=') - len("le")
	if i < 0 || string(l[i:i+3]) != "le=" || i > 0 && l[i-1] != ',' && l[i-1] != ' ' {
		return nil, nil
	}
	value := bytes.TrimSuffix(l[i+3:], []byte{','})
	if len(value) < 2 || value[0] != '"' || stringLen(value) != len(value) {
		return nil, nil
	}
	return l[:i], value[1 : len(value)-1]
}

// ParseBound parses the value of the label le: +Inf for the last bucket; false if it is not plausible.
func ParseBound(le []byte) (float64, bool) {
	v, ok := parseNumber(le)
	return v, ok && (event.Plausible(v) || math.IsInf(v, 1))
}

// parseNumber parses the number at the start of b, up to white space or the end.
func parseNumber(b []byte) (float64, bool) {
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
	if v, ok := parsePlain(b[:n]); ok {
		return v, true
	}
	for _, c := range b[:n] { // strconv accepts underscores and hexadecimals, the format does not
		if c == '_' || c == 'x' || c == 'X' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(&b[0], n), 64)
	return v, err == nil
}

// powersOfTen holds powers of ten that float64 represents exactly.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parsePlain parses at most 15 digits with an optional point: the quotient of two exact numbers is rounded correctly.
func parsePlain(b []byte) (float64, bool) {
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
	return float64(v) / powersOfTen[len(b)-1-point], true
}
