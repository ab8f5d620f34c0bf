package metric

import "math"

// Drift is how far apart two distributions of load over the same experts are: half the sum of the differences of their shares (total
// variation distance). 0: the same shares. 1: no expert in common. ok is false where one of them is empty, or their lengths differ.
func Drift(before, since []uint64) (drift float64, ok bool) {
	if len(before) != len(since) {
		return 0, false
	}
	var a, b uint64
	for i := range before {
		a, b = a+before[i], b+since[i]
	}
	if a == 0 || b == 0 {
		return 0, false
	}
	for i := range before {
		drift += math.Abs(float64(before[i])/float64(a)-float64(since[i])/float64(b)) / 2
	}
	return min(drift, 1), true
}
