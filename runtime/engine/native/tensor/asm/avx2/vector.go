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
	Suffix: "AVX2", Lanes: lanes, New: YMM, Move: func(from, to operand.Op) { VMOVUPS(from, to) },
	Read:  func(from operand.Mem, mask reg.Register, to operand.Op) { VMASKMOVPS(from, mask, to) },
	Write: func(from operand.Op, mask reg.Register, to operand.Mem) { VMASKMOVPS(from, mask, to) },
	Rest: func(left reg.GPVirtual, _ reg.Register, end string) reg.Register {
		if ADDQ(operand.Imm(lanes), left); end != "" {
			JZ(operand.LabelRef(end))
		}
		return firstLanes(left)
	},
	Sum: func(y reg.VecVirtual) reg.VecVirtual { return reduce(y, AddPS) },
}

// vectors emits the float32 helpers.
func vectors() {
	vector.Elementwise()
	swiGLU()
	vector.Dot()
	expSum()
}

// exponentials are the constants of exp, in memory because there are too few registers.
var exponentials operand.Mem

// Indexes of the constants: ExpPolynomial comes first.
const (
	expLog2e = iota + 6
	expHigh
	expLow
	expLn2High
	expLn2Low
	expOne
	expBias
	expCount
)

func expConstant(i int) operand.Mem {
	if exponentials.Symbol.Name == "" {
		exponentials = GLOBL("expAVX2", RODATA|NOPTR)
		for k, c := range append(ExpPolynomial[:6:6], ExpLog2e, ExpHigh, ExpLow, ExpLn2High, ExpLn2Low, 1) {
			for lane := range lanes {
				DATA(4*(lanes*k+lane), operand.U32(Bits(c)))
			}
		}
		for lane := range lanes {
			DATA(4*(lanes*expBias+lane), operand.U32(127))
		}
	}
	return exponentials.Offset(4 * lanes * i)
}

// exponential replaces x by its exponential; see Exp in package tensor.
func exponential(x reg.VecVirtual) {
	n, p, square, normal := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(expConstant(expLow), normal)
	VCMPPS(operand.Imm(2), x, normal, normal) // low <= x
	VMINPS(expConstant(expHigh), x, x)
	VMAXPS(expConstant(expLow), x, x)
	VMULPS(expConstant(expLog2e), x, n)
	VROUNDPS(operand.Imm(0), n, n)
	VFNMADD231PS(expConstant(expLn2High), n, x)
	VFNMADD231PS(expConstant(expLn2Low), n, x)
	VMOVUPS(expConstant(0), p)
	for i := range ExpPolynomial[1:] {
		VFMADD213PS(expConstant(1+i), x, p)
	}
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	VADDPS(expConstant(expOne), p, p)
	VCVTPS2DQ(n, n)
	VPADDD(expConstant(expBias), n, n)
	VPSLLD(operand.Imm(23), n, n)
	VMULPS(n, p, x)
	VANDPS(normal, x, x)
}

func swiGLU() {
	Kernel("swiGLUAVX2", "func(dst, gate, up []float32)", "writes silu(gate)*up to dst.")
	s, sign := vector.Span([]string{"dst", "gate", "up"}, ""), splat(1<<31)
	s.Loop("loop", func(s *Span) {
		gate, e := s.Get("gate"), YMM()
		VXORPS(sign, gate, e)
		exponential(e)
		VADDPS(expConstant(expOne), e, e)
		VDIVPS(e, gate, gate)
		VMULPS(s.Get("up"), gate, gate)
		s.Put(gate, "dst")
	})
	VZEROUPPER()
	RET()
}

// expSum emits: replace x by exp(scale*x - max(scale*x)) and return the sum.
func expSum() {
	Kernel("expSumAVX2", "func(x []float32, scale float32) float32", "replaces x by exp(scale*x - max(scale*x)) and returns the sum.")
	s, top, sum := vector.Span([]string{"x"}, "scale"), float(math.Inf(-1)), YMM()
	Zero(sum)
	s.Loop("max", func(s *Span) {
		v := s.Get("x")
		VMULPS(s.Scalar, v, v)
		if s.Mask != nil {
			VBLENDVPS(s.Mask, v, top, v)
		}
		VMAXPS(v, top, top)
	})
	VBROADCASTSS(reduce(top, MaxPS), top)
	s.Loop("exp", func(s *Span) {
		v := s.Get("x")
		VFMSUB213PS(top, s.Scalar, v)
		exponential(v)
		if s.Mask != nil {
			VANDPS(s.Mask, v, v)
		}
		VADDPS(v, sum, sum)
		s.Put(v, "x")
	})
	r := reduce(sum, AddPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}
