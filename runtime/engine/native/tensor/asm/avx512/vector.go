package main

import (
	"math"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector is how values are processed.
var vector = Vector{
	Suffix: "AVX512", Lanes: lanes, New: ZMM, Move: func(from, to operand.Op) { VMOVUPS(from, to) },
	Read:  func(from operand.Mem, mask reg.Register, to operand.Op) { VMOVUPS_Z(from, mask, to) },
	Write: func(from operand.Op, mask reg.Register, to operand.Mem) { VMOVUPS(from, mask, to) },
	Tail:  func(n reg.GPVirtual) reg.Register { return tailMask(n) },
	Rest: func(left reg.GPVirtual, tail reg.Register, end string) reg.Register {
		if end != "" {
			CMPQ(left, operand.I8(-lanes))
			JEQ(operand.LabelRef(end))
		}
		return tail
	},
	Sum: func(z reg.VecVirtual) reg.VecVirtual { return reduce(z, AddPS) },
}

// vectors emits the float32 helpers.
func vectors() {
	vector.Elementwise()
	swiGLU()
	vector.Dot()
	expSum()
	halves()
}

func float(v float64) reg.VecVirtual { return splat(Bits(v)) }

// exponential holds the constants of exp; see Exp in package tensor.
type exponential struct {
	log2e, high, low, ln2High, ln2Low, one reg.VecVirtual
	poly                                   []reg.VecVirtual
}

func newExponential() *exponential {
	e := &exponential{
		log2e: float(ExpLog2e), high: float(ExpHigh), low: float(ExpLow),
		ln2High: float(ExpLn2High), ln2Low: float(ExpLn2Low), one: float(1),
	}
	for _, c := range ExpPolynomial {
		e.poly = append(e.poly, float(c))
	}
	return e
}

// of emits: replace x by its exponential, 0 where that would be a subnormal number: each product with one, of the values
// that attention sums, takes a hundred times as long.
func (e *exponential) of(x reg.VecVirtual) {
	n, p, square, normal := ZMM(), ZMM(), ZMM(), K()
	VCMPPS(operand.Imm(5), e.low, x, normal) // not x < low
	VMINPS(e.high, x, x)
	VMULPS(e.log2e, x, n)
	VRNDSCALEPS(operand.Imm(0), n, n)
	VFNMADD231PS(e.ln2High, n, x)
	VFNMADD231PS(e.ln2Low, n, x)
	VMOVAPS(e.poly[0], p)
	for _, c := range e.poly[1:] {
		VFMADD213PS(c, x, p)
	}
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	VADDPS(e.one, p, p)
	VSCALEFPS_Z(n, p, normal, x)
}

func swiGLU() {
	Kernel("swiGLUAVX512", "func(dst, gate, up []float32)", "writes silu(gate)*up to dst.")
	s, exp, sign := vector.Span([]string{"dst", "gate", "up"}, ""), newExponential(), splat(1<<31)
	s.Loop("loop", func(s *Span) {
		gate, e := s.Get("gate"), ZMM()
		VPXORD(sign, gate, e)
		exp.of(e)
		VADDPS(exp.one, e, e)
		VDIVPS(e, gate, gate)
		VMULPS(s.Get("up"), gate, gate)
		s.Put(gate, "dst")
	})
	VZEROUPPER()
	RET()
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

// expSum emits: replace x by exp(scale*x - max(scale*x)) and return the sum.
func expSum() {
	Kernel("expSumAVX512", "func(x []float32, scale float32) float32", "replaces x by exp(scale*x - max(scale*x)) and returns the sum.")
	s, exp := vector.Span([]string{"x"}, "scale"), newExponential()
	top, sum := float(math.Inf(-1)), ZMM()
	VXORPS(sum, sum, sum)
	s.Loop("max", func(s *Span) {
		v := s.Get("x")
		VMULPS(s.Scalar, v, v)
		if s.Mask == nil {
			VMAXPS(v, top, top)
		} else {
			VMAXPS(v, top, s.Mask, top)
		}
	})
	VBROADCASTSS(reduce(top, MaxPS), top)
	s.Loop("exp", func(s *Span) {
		v := s.Get("x")
		VFMSUB213PS(top, s.Scalar, v)
		exp.of(v)
		if s.Mask == nil {
			VADDPS(v, sum, sum)
		} else {
			VADDPS(v, sum, s.Mask, sum)
		}
		s.Put(v, "x")
	})
	r := reduce(sum, AddPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
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
