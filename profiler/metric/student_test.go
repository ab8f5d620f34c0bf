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

// TestStudentTail checks that the tail is the inverse of the quantile, and its limits.
func TestStudentTail(t *testing.T) {
	for _, freedom := range []int{0, 1, 2, 3, 9, 100, math.MaxInt} {
		if got := StudentTail(StudentT(freedom), freedom); math.Abs(got-0.025) > 1e-6 {
			t.Errorf("%d degrees of freedom: %v above the 97.5 %% quantile", freedom, got)
		}
	}
	for at, want := range map[float64]float64{0: 0.5, math.Inf(1): 0, math.Inf(-1): 1, -4.3026527: 0.975} {
		if got := StudentTail(at, 2); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v is above %v, want %v", got, at, want)
		}
	}
}
