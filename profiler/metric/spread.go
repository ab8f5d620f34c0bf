package metric

import (
	"math"
	"slices"
)

// Spread is where the middle of some values is, and how far from it they are.
type Spread struct {
	N      int
	Median float64
	MAD    float64 // median of the distances from the median
}

// SpreadOf describes values, whose order it changes. The median of an even number is the mean of the two in the middle.
func SpreadOf(values []float64) Spread {
	s := Spread{N: len(values), Median: median(values)}
	for i, v := range values {
		values[i] = math.Abs(v - s.Median)
	}
	s.MAD = median(values)
	return s
}

func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// What deviates, see Deviates.
const (
	LeastToCompare = 4   // values
	FarFromMedian  = 2.0 // times the median, or one over that
	FarForSpread   = 3.5 // robust z
)

// Deviates reports whether a value is far from the others: at least twice the median or at most half of it, by at least least, and with a robust z
// = 0.6745 |v - median| / MAD above 3.5 (Iglewicz and Hoaglin 1993); where more than half of the values are the same, so that MAD is 0, z is not asked.
func (s Spread) Deviates(v, least float64) bool {
	away := math.Abs(v - s.Median)
	switch {
	case s.N < LeastToCompare || away < least || away == 0:
		return false
	case v < FarFromMedian*s.Median && v > s.Median/FarFromMedian:
		return false
	}
	return s.MAD == 0 || 0.6745*away/s.MAD > FarForSpread
}
