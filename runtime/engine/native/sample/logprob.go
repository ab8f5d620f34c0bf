package sample

import "math"

// Logprob is a token and the natural logarithm of its probability.
type Logprob struct {
	ID    int32
	Value float32
}

// TopLogprobs stores the k likeliest tokens in dst, whose memory it reuses, likeliest first. The probabilities are the
// model's, at temperature 1.
func TopLogprobs(logits []float32, k int, dst []Logprob) []Logprob {
	dst = top(dst, logits, min(k, len(logits)))
	if len(dst) == 0 {
		return dst
	}
	sum := logSumExp(logits, dst[0].Value)
	for i := range dst {
		dst[i].Value -= sum
	}
	return dst
}

// ranksAfter reports whether a ranks after b: its logit is lower, or equal with a higher id.
func ranksAfter(a, b Logprob) bool { return a.Value < b.Value || a.Value == b.Value && a.ID > b.ID }

// top stores the k tokens with the highest logits in dst, highest first. It keeps a heap of the best so far with the
// lowest ranked at the root, in O(n + k·log(k)·log(n/k)) for logits in random order.
func top(dst []Logprob, x []float32, k int) []Logprob {
	dst = dst[:0]
	if k <= 0 {
		return dst
	}
	for id, v := range x {
		switch {
		case len(dst) < k:
			if v != v {
				v = float32(math.Inf(-1))
			}
			dst = append(dst, Logprob{int32(id), v})
			if len(dst) == k {
				for i := k/2 - 1; i >= 0; i-- {
					sink(dst, i)
				}
			}
		case v > dst[0].Value:
			dst[0] = Logprob{int32(id), v}
			sink(dst, 0)
		}
	}
	for n := len(dst) - 1; n > 0; n-- {
		dst[0], dst[n] = dst[n], dst[0]
		sink(dst[:n], 0)
	}
	return dst
}

// sink moves element i down in a heap with the lowest ranked element at its root.
func sink(h []Logprob, i int) {
	moving := h[i]
	for {
		down := 2*i + 1
		if down+1 < len(h) && ranksAfter(h[down+1], h[down]) {
			down++
		}
		if down >= len(h) || !ranksAfter(h[down], moving) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = moving
}

// argmax returns the first of the highest logits; -Inf and id 0 if none exists.
func argmax(x []float32) (int32, float32) {
	id, best := 0, float32(math.Inf(-1))
	for i, v := range x {
		if v > best {
			id, best = i, v
		}
	}
	return int32(id), best
}

// logSumExp returns ln Σ exp(x); best is the maximum of x.
func logSumExp(x []float32, best float32) float32 {
	return best + float32(math.Log(sumExp(x, best)))
}

// steps is the number of table entries per octave in sumExp.
const (
	stepBits = 6
	steps    = 1 << stepBits
)

// powers holds the bits of 2^(i/steps).
var powers = func() (p [steps]uint64) {
	for i := range p {
		p[i] = math.Float64bits(math.Exp2(float64(i) / steps))
	}
	return p
}()

// sumExp returns Σ exp(x-best), where best is the maximum of x, with a relative error below 1e-6, about four times as
// fast as math.Exp: exp(d) = 2^(n/steps) · e^r with n by rounding, a table for the power, and 1+r+r²/2 for e^r, where
// |r| is at most ln(2)/(2·steps).
func sumExp(x []float32, best float32) float64 {
	const (
		round  = 3 << 51 // added to a small number it leaves an integer in the low bits
		lowest = -87     // exp of less is negligible
	)
	sum := 0.0
	for _, v := range x {
		d := v - best
		if !(d >= lowest) { // also skips NaN
			continue
		}
		y := float64(d) * (steps * math.Log2E)
		rounded := y + round
		n := int32(math.Float64bits(rounded))
		r := (y - (rounded - round)) * (math.Ln2 / steps)
		power := math.Float64frombits(powers[n&(steps-1)] + uint64(int64(n>>stepBits))<<52)
		sum += (1 + r*(1+r/2)) * power
	}
	return sum
}
