package metric

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// StudentT returns the 97.5 % quantile of Student's t distribution: half the width of a 95 % confidence interval in
// standard errors. Less than one degree of freedom counts as one.
func StudentT(freedom int) float64 {
	v := degrees(freedom)
	x := mathext.InvRegIncBeta(v/2, 0.5, 0.05)
	return math.Sqrt(v * (1 - x) / x)
}

// StudentTail returns the probability that a value of Student's t distribution is above t, 0 to 1.
func StudentTail(t float64, freedom int) float64 {
	v := degrees(freedom)
	tail := mathext.RegIncBeta(v/2, 0.5, v/(v+t*t)) / 2
	if t < 0 {
		return 1 - tail
	}
	return tail
}

// degrees bounds the degrees of freedom to a range in which the incomplete beta function is accurate; beyond a
// million the distribution is normal.
func degrees(freedom int) float64 { return float64(min(max(freedom, 1), 1_000_000)) }
