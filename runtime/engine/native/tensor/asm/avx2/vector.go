package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector is how values are processed.
var vector = Vector{
	Suffix: "AVX2", Lanes: lanes, New: YMM, Splat: splat, Read: VMASKMOVPS, Write: VMASKMOVPS, Reduce: reduce,
	Rest: func(left reg.GPVirtual, _ reg.Register, end string) reg.Register {
		if ADDQ(operand.Imm(lanes), left); end != "" {
			JZ(operand.LabelRef(end))
		}
		return firstLanes(left)
	},
	Add: func(x reg.VecVirtual, mask reg.Register, into reg.VecVirtual) {
		if mask != nil {
			VANDPS(mask, x, x)
		}
		VADDPS(x, into, into)
	},
	Max: func(x reg.VecVirtual, mask reg.Register, into reg.VecVirtual) {
		if mask != nil {
			VBLENDVPS(mask, x, into, x)
		}
		VMAXPS(x, into, into)
	},
}

// exponential returns the exponential, with its constants in memory because there are too few registers.
func exponential() (one operand.Op, of func(x reg.VecVirtual)) {
	e := NewExponential(func(v float64) operand.Op { return all(Bits(v)) })
	return e.One, func(x reg.VecVirtual) {
		normal := YMM()
		VMOVUPS(e.Low, normal)
		VCMPPS(operand.Imm(2), x, normal, normal) // low <= x
		VMINPS(e.High, x, x)
		VMAXPS(e.Low, x, x)
		n, p := e.Parts(x, YMM, func(n reg.VecVirtual) { VROUNDPS(operand.Imm(0), n, n) })
		VCVTPS2DQ(n, n)
		VPADDD(all(127), n, n)
		VPSLLD(operand.Imm(23), n, n)
		VMULPS(n, p, x)
		VANDPS(normal, x, x)
	}
}
