package metric

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSpread(t *testing.T) {
	s := SpreadOf([]float64{10, 11, 9, 10, 31, 10.5})
	if s.N != 6 || s.Median != 10.25 || s.MAD != 0.5 {
		t.Fatalf("%+v, want a median of 10.25 and a MAD of 0.5", s)
	}
	for _, c := range []struct {
		v, least float64
		far      bool
	}{
		{31, 0, true},     // three times the median
		{31, 25, false},   // closer than the least distance
		{20, 0, false},    // less than twice
		{5, 0, true},      // less than half
		{10.25, 0, false}, // the median
	} {
		if got := s.Deviates(c.v, c.least); got != c.far {
			t.Errorf("%v deviates by %v or more: %v, want %v", c.v, c.least, got, c.far)
		}
	}
}

// Values that are all far apart have no outlier, nor do fewer than three. If all others are equal, one that differs is
// an outlier.
func TestSpreadEdgeCases(t *testing.T) {
	if s := SpreadOf([]float64{1, 5, 20, 80, 300}); s.Deviates(80, 0) {
		t.Errorf("80 is an outlier among values that are all far apart: %+v", s)
	}
	for _, c := range []struct {
		values []float64
		far    bool // the last one
	}{
		{[]float64{1, 9}, false},           // either may be the one that is far off
		{[]float64{1, 1.05, 5}, true},      // one of three
		{[]float64{1, 2, 5}, false},        // three that are all far apart
		{[]float64{1, 1.05, 0.2}, true},    // and below the others
		{[]float64{1, 1, 5, 5}, false},     // half of four
		{[]float64{1, 1.1, 1, 5, 5}, true}, // two of five
	} {
		if got := SpreadOf(slices.Clone(c.values)).Deviates(c.values[len(c.values)-1], 0); got != c.far {
			t.Errorf("the last of %v is an outlier: %v, want %v", c.values, got, c.far)
		}
	}
	if s := SpreadOf([]float64{0, 0, 0, 0, 7}); !s.Deviates(7, 1) || s.Deviates(0, 0) {
		t.Errorf("among equal values 7 is no outlier, or 0 is one: %+v", s)
	}
	if s := SpreadOf(nil); s.Deviates(1, 0) {
		t.Error("an outlier without values")
	}
}

// The median is that of the sorted values.
func TestMedian(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-9, 9), rapid.SampledFrom([]float64{0, 1, math.Inf(1)})), 1, 99).Draw(r, "values")
		sorted := slices.Sorted(slices.Values(values))
		low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
		if got := Median(values); got != (low+high)/2 {
			r.Fatalf("median %v of %v", got, sorted)
		}
	})
}

func BenchmarkSpread(b *testing.B) {
	values := make([]float64, 500)
	for b.Loop() {
		for i := range values {
			values[i] = float64(i*7919%500) * .01
		}
		SpreadOf(values)
	}
}
