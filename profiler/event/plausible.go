package event

import (
	"math"
	"reflect"
	"time"
)

// The bounds of plausible readings. Every source rejects values outside them as malformed; docs/event-protocol.md
// documents them for engines. The sum of two plausible times and a plausible duration fits an int64.
const (
	MaxTime   = Time(4e18) // ns from the clock's epoch, in both directions: until 2096 for an epoch of 1970
	MaxShare  = 1.1        // of a whole: a little above 1 is rounding, more is no share, but for example a percentage
	MaxNumber = 1e18       // all other numbers, in both directions: durations in ns (31 years), counts, bytes, rates

	MaxTokens      = 1 << 30        // tokens of one request
	MaxRequestTime = 24 * time.Hour // duration of one request, or of a part of it
)

// Plausible reports whether a clock can show t.
func (t Time) Plausible() bool { return t >= -MaxTime && t <= MaxTime }

// PlausibleCount reports whether v can be a count, a duration in ns or a number of bytes; none is negative.
func PlausibleCount[T ~int | ~int64 | ~uint64](v T) bool { return v >= 0 && uint64(v) <= MaxNumber }

// Plausible reports whether v can be a measured number. NaN and infinities cannot.
func Plausible(v float64) bool { return v >= -MaxNumber && v <= MaxNumber }

// PlausibleReading reports whether v can be a count, a share, a size, a duration or a rate: none is negative, and those
// above 0 are large enough that the quotient of two is finite.
func PlausibleReading(v float64) bool { return v == 0 || v >= 1/MaxNumber && v <= MaxNumber }

// Refuse replaces the numbers in v, a struct, slice or pointer of decoded JSON, that are implausible, and returns how many:
// integers by 0 (unknown), floats by NaN (no reading).
func Refuse(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return Refuse(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += Refuse(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return 0
		}
		for i := range v.Len() {
			n += Refuse(v.Index(i))
		}
	case reflect.Int, reflect.Int64:
		if !Plausible(float64(v.Int())) && v.CanSet() {
			v.SetInt(0)
			return 1
		}
	case reflect.Float64:
		if !Plausible(v.Float()) && v.CanSet() {
			v.SetFloat(math.NaN())
			return 1
		}
	}
	return n
}

// Add returns a + b, saturating at the ends of int64.
func Add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// AddCount returns a + b, saturating at the largest uint64.
func AddCount(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
