package main

import (
	"math"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors emits the float32 helpers. Each processes 8 values at a time, and the rest with a mask.
func vectors() {
	elementwise("addToAVX2", "func(y, x *float32, n int)", []string{"y", "x"}, "", func(s *span) {
		v := s.read("x")
		VADDPS(s.read("y"), v, v)
		s.write(v, "y")
	})
	elementwise("axpyAVX2", "func(y *float32, a float32, x *float32, n int)", []string{"y", "x"}, "a", func(s *span) {
		y := s.read("y")
		VFMADD231PS(s.scalar, s.read("x"), y)
		s.write(y, "y")
	})
	elementwise("scaleToAVX2", "func(dst, x *float32, s float32, n int)", []string{"dst", "x"}, "s", func(s *span) {
		v := s.read("x")
		VMULPS(s.scalar, v, v)
		s.write(v, "dst")
	})
	elementwise("scaleMulAVX2", "func(dst, x, w *float32, s float32, n int)", []string{"dst", "x", "w"}, "s", func(s *span) {
		v := s.read("x")
		VMULPS(s.scalar, v, v)
		VMULPS(s.read("w"), v, v)
		s.write(v, "dst")
	})
	elementwise("rotateHalvesAVX2", "func(x, y, cos, sin *float32, n int)", []string{"x", "y", "cos", "sin"}, "", func(s *span) {
		x, y, cos, sin := s.read("x"), s.read("y"), s.read("cos"), s.read("sin")
		a, b := YMM(), YMM()
		VMULPS(sin, y, a)
		VMULPS(cos, y, b)
		VFMSUB231PS(cos, x, a)
		VFMADD231PS(sin, x, b)
		s.write(a, "x")
		s.write(b, "y")
	})
	swiGLU()
	dot()
	expSum()
}

// span is the range of values that the emitted code processes: 8 values, or fewer with a mask.
type span struct {
	ptr    map[string]reg.GPVirtual
	scalar reg.VecVirtual
	at     reg.GPVirtual // index of the first value
	mask   reg.VecVirtual
}

func newSpan(pointers []string, scalar string) *span {
	s := &span{ptr: map[string]reg.GPVirtual{}, at: GP64()}
	for _, p := range pointers {
		s.ptr[p] = Arg(p)
	}
	if scalar != "" {
		x := XMM()
		s.scalar = YMM()
		Load(Param(scalar), x)
		VBROADCASTSS(x, s.scalar)
	}
	return s
}

func (s *span) mem(name string) operand.Mem {
	return operand.Mem{Base: s.ptr[name], Index: s.at, Scale: 4}
}

func (s *span) read(name string) reg.VecVirtual {
	y := YMM()
	if s.mask == nil {
		VMOVUPS(s.mem(name), y)
	} else {
		VMASKMOVPS(s.mem(name), s.mask, y)
	}
	return y
}

func (s *span) write(y reg.VecVirtual, name string) {
	if s.mask == nil {
		VMOVUPS(y, s.mem(name))
	} else {
		VMASKMOVPS(y, s.mask, s.mem(name))
	}
}

// loop emits do for 8 values in a loop, and once for the rest. The labels start with name.
func (s *span) loop(name string, do func(s *span)) {
	left := Arg("n")
	XORQ(s.at, s.at)
	Label(name)
	SUBQ(operand.Imm(lanes), left)
	JLT(operand.LabelRef(name + "Rest"))
	s.mask = nil
	do(s)
	ADDQ(operand.Imm(lanes), s.at)
	JMP(operand.LabelRef(name))
	Label(name + "Rest")
	ADDQ(operand.Imm(lanes), left)
	JZ(operand.LabelRef(name + "End"))
	s.mask = firstLanes(left)
	do(s)
	Label(name + "End")
	s.mask = nil
}

// elementwise emits a helper that processes each value separately.
func elementwise(name, signature string, pointers []string, scalar string, do func(s *span)) {
	TEXT(name, NOSPLIT, signature)
	newSpan(pointers, scalar).loop("loop", do)
	VZEROUPPER()
	RET()
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
	TEXT("swiGLUAVX2", NOSPLIT, "func(dst, gate, up *float32, n int)")
	s, sign := newSpan([]string{"dst", "gate", "up"}, ""), splat(1<<31)
	s.loop("loop", func(s *span) {
		gate, e := s.read("gate"), YMM()
		VXORPS(sign, gate, e)
		exponential(e)
		VADDPS(expConstant(expOne), e, e)
		VDIVPS(e, gate, gate)
		VMULPS(s.read("up"), gate, gate)
		s.write(gate, "dst")
	})
	VZEROUPPER()
	RET()
}

// dot uses four accumulators in turn, 32 values per step, then only the first.
func dot() {
	TEXT("dotAVX2", NOSPLIT, "func(x, y *float32, n int) float32")
	s, sums, n := newSpan([]string{"x", "y"}, ""), ymms(4), Arg("n")
	zero(sums...)
	XORQ(s.at, s.at)
	Label("wide")
	SUBQ(operand.Imm(4*lanes), n)
	JLT(operand.LabelRef("few"))
	for i, sum := range sums {
		x := YMM()
		VMOVUPS(s.mem("x").Offset(32*i), x)
		VFMADD231PS(s.mem("y").Offset(32*i), x, sum)
	}
	ADDQ(operand.Imm(4*lanes), s.at)
	JMP(operand.LabelRef("wide"))
	Label("few")
	ADDQ(operand.Imm(4*lanes), n)
	Label("next")
	SUBQ(operand.Imm(lanes), n)
	JLT(operand.LabelRef("rest"))
	VFMADD231PS(s.read("x"), s.read("y"), sums[0])
	ADDQ(operand.Imm(lanes), s.at)
	JMP(operand.LabelRef("next"))
	Label("rest")
	ADDQ(operand.Imm(lanes), n)
	s.mask = firstLanes(n)
	VFMADD231PS(s.read("x"), s.read("y"), sums[0])
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	r := reduce(sums[0], addPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}

// expSum emits: replace x by exp(scale*x - max(scale*x)) and return the sum.
func expSum() {
	TEXT("expSumAVX2", NOSPLIT, "func(x *float32, scale float32, n int) float32")
	s, top, sum := newSpan([]string{"x"}, "scale"), float(math.Inf(-1)), YMM()
	zero(sum)
	s.loop("max", func(s *span) {
		v := s.read("x")
		VMULPS(s.scalar, v, v)
		if s.mask != nil {
			VBLENDVPS(s.mask, v, top, v)
		}
		VMAXPS(v, top, top)
	})
	VBROADCASTSS(reduce(top, maxPS), top)
	s.loop("exp", func(s *span) {
		v := s.read("x")
		VFMSUB213PS(top, s.scalar, v)
		exponential(v)
		if s.mask != nil {
			VANDPS(s.mask, v, v)
		}
		VADDPS(v, sum, sum)
		s.write(v, "x")
	})
	r := reduce(sum, addPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}
