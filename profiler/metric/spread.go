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
	upper := nth(values, n/2)
	if n%2 == 1 {
		return upper
	}
	return (slices.Max(values[:n/2]) + upper) / 2
}

// nth returns the value at index i of the sorted values, and reorders them so that those before i are not larger. It is
// Hoare's quickselect: medians of hundreds of replicas are needed ten times a second, and sorting takes three times as
// long.
func nth(values []float64, i int) float64 {
	for from, to := 0, len(values)-1; from < to; {
		pivot, low, high := values[(from+to)/2], from, to
		for low <= high {
			for values[low] < pivot {
				low++
			}
			for values[high] > pivot {
				high--
			}
			if low <= high {
				values[low], values[high] = values[high], values[low]
				low, high = low+1, high-1
			}
		}
		switch {
		case i <= high:
			to = high
		case i >= low:
			from = low
		default: // between equal values
			return values[i]
		}
	}
	return values[i]
}

// Thresholds of Deviates.
const (
	LeastToCompare = 4   // minimum number of values
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
