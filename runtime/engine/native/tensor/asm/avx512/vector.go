package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector is how values are processed.
var vector = Vector{
	Suffix: "AVX512", Lanes: lanes, New: ZMM, Splat: splat, Read: VMOVUPS_Z, Reduce: reduce,
	Write: func(from, mask, to operand.Op) { VMOVUPS(from, mask, to) },
	Tail:  func(n reg.GPVirtual) reg.Register { return tailMask(n) },
	Rest: func(left reg.GPVirtual, tail reg.Register, end string) reg.Register {
		if end != "" {
			CMPQ(left, operand.I8(-lanes))
			JEQ(operand.LabelRef(end))
		}
		return tail
	},
	Add: combine(VADDPS),
	Max: combine(VMAXPS),
}

func combine(op func(ops ...operand.Op)) func(x reg.VecVirtual, mask reg.Register, into reg.VecVirtual) {
	return func(x reg.VecVirtual, mask reg.Register, into reg.VecVirtual) {
		if mask == nil {
			op(x, into, into)
		} else {
			op(x, into, mask, into)
		}
	}
}

// exponential returns the exponential, with its constants in registers. It is 0 where it would be a subnormal number: each
// product with one, of the values that attention sums, takes a hundred times as long.
func exponential() (one operand.Op, of func(x reg.VecVirtual)) {
	e := NewExponential(func(v float64) operand.Op { return splat(Bits(v)) })
	return e.One, func(x reg.VecVirtual) {
		normal := K()
		VCMPPS(operand.Imm(5), e.Low, x, normal) // not x < low
		VMINPS(e.High, x, x)
		n, p := e.Parts(x, ZMM, func(n reg.VecVirtual) { VRNDSCALEPS(operand.Imm(0), n, n) })
		VSCALEFPS_Z(n, p, normal, x)
	}
}

// reduce combines the 16 lanes of z into the first one of the result.
func reduce(z reg.VecVirtual, op func(a, b, c reg.Register)) reg.VecVirtual {
	half, quarter, x := YMM(), XMM(), XMM()
	VEXTRACTF64X4(operand.Imm(1), z, half)
	op(z.AsY(), half, half)
	VEXTRACTF32X4(operand.Imm(1), half, quarter)
	op(half.AsX(), quarter, quarter)
	VPERMILPS(operand.Imm(0x4e), quarter, x)
	op(quarter, x, quarter)
	VPERMILPS(operand.Imm(0xb1), quarter, x)
	op(quarter, x, quarter)
	return quarter
}

// halves emits the conversion of float32 to half floats.
func halves() {
	Kernel("floatsToHalvesAVX512", "func(dst []uint16, src []float32)", "converts float32 to half floats.")
	s := vector.Span([]string{"dst", "src"}, "")
	s.Loop("loop", func(s *Span) {
		halves := operand.Mem{Base: s.Ptr["dst"], Index: s.At, Scale: 2}
		if s.Mask == nil {
			VCVTPS2PH(operand.Imm(0), s.Get("src"), halves)
			return
		}
		h := YMM()
		VCVTPS2PH(operand.Imm(0), s.Get("src"), h)
		VMOVDQU16(h, s.Mask, halves)
	})
	VZEROUPPER()
	RET()
}
