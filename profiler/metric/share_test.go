package metric

import (
	"math"
	"testing"
)

func TestShare(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ part, whole, want float64 }{
		{1, 4, 0.25},
		{4, 4, 1},
		{5, 4, 1},
		{-1, 4, 0},
		{1, 0, 0},
		{1, -4, 0},
		{0, 0, 0},
		{1.7e308, 5e-324, 1},
		{inf, 4, 1},
		{inf, inf, 1},
		{1, inf, 0},
		{math.NaN(), 4, 0},
		{1, math.NaN(), 0},
	} {
		if got := Share(c.part, c.whole); got != c.want {
			t.Errorf("Share(%v, %v) = %v, want %v", c.part, c.whole, got, c.want)
		}
	}
}
