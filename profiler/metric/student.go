package metric

import "math"

// StudentT returns the 97.5 % quantile of Student's t distribution: half the width of a 95 % confidence interval in
// standard errors. It uses the Cornish-Fisher expansion around the normal distribution (Abramowitz and Stegun, 26.7.5),
// which is within 0.5 % from 3 degrees of freedom on. One and two degrees are exact.
func StudentT(freedom int) float64 {
	switch {
	case freedom <= 1:
		return 12.7062047
	case freedom == 2:
		return 4.3026527
	}
	const z = 1.959963984540054
	v := float64(freedom)
	z3, z5, z7, z9 := math.Pow(z, 3), math.Pow(z, 5), math.Pow(z, 7), math.Pow(z, 9)
	return z + (z3+z)/4/v + (5*z5+16*z3+3*z)/96/(v*v) + (3*z7+19*z5+17*z3-15*z)/384/(v*v*v) +
		(79*z9+776*z7+1482*z5-1920*z3-945*z)/92160/(v*v*v*v)
}
