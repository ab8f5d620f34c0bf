package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// arrivals returns the send times of the requests of an open loop, starting at 0. Intervals follow a gamma distribution
// with the burstiness as shape and a mean of 1/rate, as in `vllm bench serve`.
func arrivals(n int, rate, burstiness float64, rng *rand.Rand) []time.Duration {
	out := make([]time.Duration, n)
	at := 0.0
	for i := range out {
		out[i] = time.Duration(at * 1e9)
		interval := 1.0
		if !math.IsInf(burstiness, 1) {
			interval = gamma(burstiness, rng) / burstiness
		}
		at += interval / rate
	}
	return out
}

// gamma samples the gamma distribution with the given shape and a scale of 1, with the method of Marsaglia and Tsang,
// "A Simple Method for Generating Gamma Variables" (2000).
func gamma(shape float64, rng *rand.Rand) float64 {
	if shape < 1 {
		return gamma(shape+1, rng) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := rng.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
