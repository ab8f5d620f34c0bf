package metric

import "testing"

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
		{31, 25, false},   // but not by as much as matters
		{20, 0, false},    // less than twice
		{5, 0, true},      // less than half
		{10.25, 0, false}, // the median
	} {
		if got := s.Deviates(c.v, c.least); got != c.far {
			t.Errorf("%v deviates by %v or more: %v, want %v", c.v, c.least, got, c.far)
		}
	}
}

// Where all are far apart nobody stands out, of few nobody is told, and where all others are the same one that is not does.
func TestSpreadOfOddFleets(t *testing.T) {
	if s := SpreadOf([]float64{1, 5, 20, 80, 300}); s.Deviates(80, 0) {
		t.Errorf("80 stands out among values that are all far apart: %+v", s)
	}
	if s := SpreadOf([]float64{1, 1, 9}); s.Deviates(9, 0) {
		t.Error("of three values one stands out")
	}
	if s := SpreadOf([]float64{0, 0, 0, 0, 7}); !s.Deviates(7, 1) || s.Deviates(0, 0) {
		t.Errorf("among values that are all the same 7 does not stand out, or 0 does: %+v", s)
	}
	if s := SpreadOf(nil); s.Deviates(1, 0) {
		t.Error("among no values one stands out")
	}
}
