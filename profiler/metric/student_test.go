package metric

import (
	"math"
	"testing"
)

// TestStudentT compares with published tables.
func TestStudentT(t *testing.T) {
	for freedom, want := range map[int]float64{
		0: 12.706, 1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 8: 2.306, 9: 2.262, 18: 2.101, 30: 2.042, 120: 1.980, math.MaxInt: 1.960,
	} {
		if got := StudentT(freedom); math.Abs(got/want-1) > 0.005 {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}
