package metric

import "math"

// JensenShannon is how far apart two distributions of picks over the same experts are, in bits: 0 if they are the same, 1 if no expert
// is picked in both. With the shares p and q and m their mean, it is the mean of KL(p||m) and KL(q||m), to base 2 (Lin 1991). False if either
// has no pick.
//
// Samples of the same router differ too. By chance two of n1 and n2 picks over k experts are about (k-1) / (8 ln 2) x (1/n1 + 1/n2)
// apart: the mean of what is above, for p and q near each other, where it is the sum of (p-q)^2 / m divided by 8 ln 2. The picks of a token
// follow those of the one before, so that it is rather more.
func JensenShannon(a, b []uint64) (bits, chance float64, ok bool) {
	var sumA, sumB uint64
	k := 0
	for i := range a {
		sumA, sumB = sumA+a[i], sumB+b[i]
		if a[i]|b[i] != 0 {
			k++
		}
	}
	if sumA == 0 || sumB == 0 {
		return 0, 0, false
	}
	ofA, ofB := 1/float64(sumA), 1/float64(sumB)
	for i := range a {
		p, q := float64(a[i])*ofA, float64(b[i])*ofB
		if p > 0 {
			bits += p * math.Log2(2*p/(p+q))
		}
		if q > 0 {
			bits += q * math.Log2(2*q/(p+q))
		}
	}
	return min(max(bits/2, 0), 1), min(float64(k-1)/(8*math.Ln2)*(ofA+ofB), 1), true
}
