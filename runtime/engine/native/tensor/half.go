package tensor

import (
	"encoding/binary"
	"math"
)

// HalfToFloat returns the value of an IEEE 754 half float (binary16).
func HalfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0: // a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// FloatToHalf rounds f to the nearest half float, ties to even; values that are too large become infinite.
func FloatToHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign, b := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case b > 0x7f800000: // NaN, made quiet
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: subnormal, rounded by an addition whose unit is 2^-24
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16(b>>13-112<<10)
}

func halvesToFloatsGo(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = HalfToFloat(h)
	}
}

func floatsToHalvesGo(dst []uint16, src []float32) {
	for i, f := range src {
		dst[i] = FloatToHalf(f)
	}
}

// halfAt returns the half float stored at b[0:2].
func halfAt(b []byte) float32 { return HalfToFloat(binary.LittleEndian.Uint16(b)) }
