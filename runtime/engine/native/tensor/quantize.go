package tensor

import "math"

// quantizeQ80Go rounds x to blocks of 32 as ggml's AVX code for block_q8_0 does: scale amax/127 as a
// half float, values times 127/amax, rounded to even.
func quantizeQ80Go(dst []actBlock, x []float32) {
	for b := range dst {
		v := x[b*blockElems : (b+1)*blockElems]
		amax := absMax(v)
		inverse := float32(0)
		if amax != 0 {
			inverse = 127 / amax
		}
		dst[b].fill(v, inverse, HalfToFloat(FloatToHalf(amax/127)))
	}
}

// fill quantises 32 values: q = x*inverse to the nearest integer.
func (b *actBlock) fill(x []float32, inverse, scale float32) {
	sums := [2]int32{}
	b.off32 = [4]int16{}
	for i, v := range x[:blockElems] {
		q := roundToEven(v * inverse)
		b.q[i] = int8(q)
		sums[i/16] += q
		b.off32[i/16*2+i/2%2] += int16(32 * q)
	}
	b.scale, b.sum = scale, scale*float32(sums[0]+sums[1])
	b.off, b.off0, b.off1 = -128*(sums[0]+sums[1]), -128*sums[0], -128*sums[1]
}

// roundToEven rounds v, of magnitude below 2^22, to the nearest integer: after adding 1.5·2^23 no fraction bits are
// left.
func roundToEven(v float32) int32 {
	return int32(math.Float32bits(v+12582912)&0x7fffff) - 0x400000
}

// absMax returns the largest magnitude in x.
func absMax(x []float32) float32 {
	m := float32(0)
	for _, v := range x {
		m = max(m, float32(math.Abs(float64(v))))
	}
	return m
}
