package emit

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// Registers returns n new registers.
func Registers(n int, next func() reg.VecVirtual) []reg.VecVirtual {
	r := make([]reg.VecVirtual, n)
	for i := range r {
		r[i] = next()
	}
	return r
}

// Zero clears registers.
func Zero(all ...reg.VecVirtual) {
	for _, r := range all {
		VXORPS(r, r, r)
	}
}

// Transpose4 transposes four rows per lane to four columns per lane, separately in each 128-bit lane.
func Transpose4(r []reg.VecVirtual, next func() reg.VecVirtual) {
	low, high, low2, high2 := next(), next(), next(), next()
	VPUNPCKLDQ(r[1], r[0], low)
	VPUNPCKHDQ(r[1], r[0], high)
	VPUNPCKLDQ(r[3], r[2], low2)
	VPUNPCKHDQ(r[3], r[2], high2)
	VPUNPCKLQDQ(low2, low, r[0])
	VPUNPCKHQDQ(low2, low, r[1])
	VPUNPCKLQDQ(high2, high, r[2])
	VPUNPCKHQDQ(high2, high, r[3])
}

// AddPS and MaxPS combine float32 values: how to reduce the lanes of a register.
func AddPS(a, b, c reg.Register) { VADDPS(a, b, c) }
func MaxPS(a, b, c reg.Register) { VMAXPS(a, b, c) }
