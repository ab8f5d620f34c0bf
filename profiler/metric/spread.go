package metric

import (
	"math"
	"slices"
)

// Spread is the median of a set of values and their median absolute deviation.
type Spread struct {
	N      int
	Median float64
	MAD    float64 // median absolute deviation from the median
}

// SpreadOf describes values and reorders them. The median of an even number of values is the mean of the middle two.
func SpreadOf(values []float64) Spread {
	s := Spread{N: len(values), Median: MedianOf(values)}
	for i, v := range values {
		values[i] = math.Abs(v - s.Median)
	}
	s.MAD = MedianOf(values)
	return s
}

// Median returns the median of values, of an even number the mean of the middle two; 0 without values.
func Median(values []float64) float64 { return MedianOf(slices.Clone(values)) }

// MedianOf is Median, but reorders values.
func MedianOf(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	upper := SelectNth(values, n/2)
	if n%2 == 1 {
		return upper
	}
	return (slices.Max(values[:n/2]) + upper) / 2
}

// SelectNth returns the value at index n of the sorted values (quickselect: C. A. R. Hoare, Algorithm 65: FIND, 1961). It
// reorders v so that no value before index n is larger and none after it is smaller. Sorting takes three times as long.
func SelectNth(v []float64, n int) float64 {
	lo, hi := 0, len(v)-1
	for lo < hi {
		pivot := v[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default: // between equal values
			return v[n]
		}
	}
	return v[n]
}

// Thresholds of Deviates.
const (
	LeastToCompare = 3   // minimum number of values: of two, nothing says which one is far off
	FarFromMedian  = 2.0 // at least this many times the median, or at most the median divided by it
	FarForSpread   = 3.5 // robust z above this
)

// Deviates reports whether v is an outlier: at least twice or at most half the median, at least least away from it, and
// with a robust z = 0.6745 |v - median| / MAD above 3.5 (Iglewicz and Hoaglin 1993). If more than half of the values
// are equal, MAD is 0 and z is not checked.
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
