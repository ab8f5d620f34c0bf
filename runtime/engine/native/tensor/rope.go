package tensor

import "math"

// Rotary is a table of rotary position embeddings: for each position the cosines and sines of rot/2 angles.
type Rotary struct {
	half     int
	cos, sin []float32 // by position
}

// NewRotary computes angles pos * base^(-2i/rot) / scale for i in 0..rot/2 and positions 0..positions; factors, if
// given, divide the i-th frequency (rope_freqs of Llama 3).
func NewRotary(rot, positions int, base, scale float64, factors []float32) *Rotary {
	r := &Rotary{half: rot / 2, cos: make([]float32, positions*rot/2), sin: make([]float32, positions*rot/2)}
	for i := range r.half {
		freq := math.Pow(base, -2*float64(i)/float64(rot)) / scale
		if factors != nil {
			freq /= float64(factors[i])
		}
		for p := range positions {
			s, c := math.Sincos(float64(p) * freq)
			r.cos[p*r.half+i], r.sin[p*r.half+i] = float32(c), float32(s)
		}
	}
	return r
}

// Neox rotates the first rot values of one head at position pos, pairing value i with i+rot/2.
func (r *Rotary) Neox(x []float32, pos int) {
	if r.half == 0 {
		return
	}
	cos, sin := r.at(pos)
	sets[active].rotateHalves(x[:r.half], x[r.half:2*r.half], cos, sin)
}

// Norm rotates the first rot values of one head at position pos, pairing value 2i with 2i+1.
func (r *Rotary) Norm(x []float32, pos int) {
	cos, sin := r.at(pos)
	for i, c := range cos {
		a, b := x[2*i], x[2*i+1]
		x[2*i], x[2*i+1] = a*c-b*sin[i], a*sin[i]+b*c
	}
}

func (r *Rotary) at(pos int) (cos, sin []float32) {
	return r.cos[pos*r.half:][:r.half], r.sin[pos*r.half:][:r.half]
}

func rotateHalvesGo(x, y, cos, sin []float32) {
	for i, c := range cos {
		a, b := x[i], y[i]
		x[i], y[i] = a*c-b*sin[i], a*sin[i]+b*c
	}
}
