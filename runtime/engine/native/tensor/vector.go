package tensor

import "math"

// Axpy adds a*x to y[:len(x)].
func Axpy(y []float32, a float32, x []float32) {
	if len(x) > 0 {
		sets[active].axpy(y[:len(x)], a, x)
	}
}

// AddTo adds x to y[:len(x)].
func AddTo(y, x []float32) {
	if len(x) > 0 {
		sets[active].addTo(y[:len(x)], x)
	}
}

// RMSNorm writes x / sqrt(mean(x²)+eps) * weight to dst, which may be x.
func RMSNorm(dst, x, weight []float32, eps float32) {
	if len(x) == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(float64(sets[active].dot(x, x))/float64(len(x))+float64(eps)))
	sets[active].scaleMul(dst[:len(x)], x, weight[:len(x)], scale)
}

// Softmax replaces x by softmax(scale*x). Exponentials are accurate to 2 units in the last place.
func Softmax(x []float32, scale float32) {
	if len(x) > 0 {
		sets[active].scaleTo(x, x, 1/sets[active].expSum(x, scale))
	}
}

// SwiGLU writes silu(gate)*up to dst, where silu(g) = g/(1+exp(-g)); dst may be gate or up.
func SwiGLU(dst, gate, up []float32) {
	if len(gate) > 0 {
		sets[active].swiGLU(dst[:len(gate)], gate, up[:len(gate)])
	}
}

func dotGo(x, y []float32) float32 {
	var sums [4]float32 // independent sums
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		sums[0] += x[i] * y[i]
		sums[1] += x[i+1] * y[i+1]
		sums[2] += x[i+2] * y[i+2]
		sums[3] += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		sums[0] += x[i] * y[i]
	}
	return sums[0] + sums[1] + (sums[2] + sums[3])
}

func axpyGo(y []float32, a float32, x []float32) {
	for i, v := range x {
		y[i] += a * v
	}
}

func addToGo(y, x []float32) {
	for i, v := range x {
		y[i] += v
	}
}

func scaleToGo(dst, x []float32, s float32) {
	for i, v := range x {
		dst[i] = v * s
	}
}

func scaleMulGo(dst, x, w []float32, s float32) {
	for i, v := range x {
		dst[i] = v * s * w[i]
	}
}

// expSumGo replaces x by exp(scale*x - max(scale*x)) and returns the sum.
func expSumGo(x []float32, scale float32) float32 {
	top := x[0] * scale
	for _, v := range x {
		top = max(top, v*scale)
	}
	sum := float32(0)
	for i, v := range x {
		x[i] = Exp(v*scale - top)
		sum += x[i]
	}
	return sum
}

func swiGLUGo(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = g / (1 + Exp(-g)) * up[i]
	}
}

// Exp returns e^x in float32, with the polynomial of Cephes' expf that the assembly also uses: within 2 units in the
// last place between -87.3 and 88.4, 0 below that, and limited to 2.4e38 above.
func Exp(x float32) float32 {
	const (
		log2e     = 1.44269504088896341
		ln2High   = 0.693359375
		ln2Low    = -2.12194440e-4
		low, high = -87.3365447505, 88.3762626647949
	)
	if x < low {
		return 0
	}
	x = min(x, high)
	n := float32(math.RoundToEven(float64(x * log2e)))
	r := x - n*ln2High - n*ln2Low
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	p = p*r*r + r + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
