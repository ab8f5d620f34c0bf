package main

import (
	"math"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors emits the float32 helpers. Each processes 16 values at a time, and the rest with a mask.
func vectors() {
	elementwise("addToAVX512", "func(y, x *float32, n int)", []string{"y", "x"}, "", func(s *span) {
		v := s.read("x")
		VADDPS(s.read("y"), v, v)
		s.write(v, "y")
	})
	elementwise("axpyAVX512", "func(y *float32, a float32, x *float32, n int)", []string{"y", "x"}, "a", func(s *span) {
		y := s.read("y")
		VFMADD231PS(s.scalar, s.read("x"), y)
		s.write(y, "y")
	})
	elementwise("scaleToAVX512", "func(dst, x *float32, s float32, n int)", []string{"dst", "x"}, "s", func(s *span) {
		v := s.read("x")
		VMULPS(s.scalar, v, v)
		s.write(v, "dst")
	})
	elementwise("scaleMulAVX512", "func(dst, x, w *float32, s float32, n int)", []string{"dst", "x", "w"}, "s", func(s *span) {
		v := s.read("x")
		VMULPS(s.scalar, v, v)
		VMULPS(s.read("w"), v, v)
		s.write(v, "dst")
	})
	elementwise("rotateHalvesAVX512", "func(x, y, cos, sin *float32, n int)", []string{"x", "y", "cos", "sin"}, "", func(s *span) {
		x, y, cos, sin := s.read("x"), s.read("y"), s.read("cos"), s.read("sin")
		a, b := ZMM(), ZMM()
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
	halves()
}

// span is the range of values that the emitted code processes: 16 values, or fewer with a mask.
type span struct {
	ptr    map[string]reg.GPVirtual
	scalar reg.VecVirtual
	at     reg.GPVirtual // index of the first value
	mask   *reg.OpmaskVirtual
}

func newSpan(pointers []string, scalar string) *span {
	s := &span{ptr: map[string]reg.GPVirtual{}, at: GP64()}
	for _, p := range pointers {
		s.ptr[p] = Arg(p)
	}
	if scalar != "" {
		x := XMM()
		s.scalar = ZMM()
		Load(Param(scalar), x)
		VBROADCASTSS(x, s.scalar)
	}
	return s
}

func (s *span) mem(name string) operand.Mem {
	return operand.Mem{Base: s.ptr[name], Index: s.at, Scale: 4}
}

func (s *span) read(name string) reg.VecVirtual {
	z := ZMM()
	if s.mask == nil {
		VMOVUPS(s.mem(name), z)
	} else {
		VMOVUPS_Z(s.mem(name), *s.mask, z)
	}
	return z
}

func (s *span) write(z reg.VecVirtual, name string) {
	if s.mask == nil {
		VMOVUPS(z, s.mem(name))
	} else {
		VMOVUPS(z, *s.mask, s.mem(name))
	}
}

// loop emits do for 16 values in a loop, and once for the rest. The labels start with name.
func (s *span) loop(name string, do func(s *span)) {
	left, tail := Arg("n"), tailMask("n")
	XORQ(s.at, s.at)
	Label(name)
	SUBQ(operand.Imm(lanes), left)
	JLT(operand.LabelRef(name + "Rest"))
	s.mask = nil
	do(s)
	ADDQ(operand.Imm(lanes), s.at)
	JMP(operand.LabelRef(name))
	Label(name + "Rest")
	CMPQ(left, operand.I8(-lanes))
	JEQ(operand.LabelRef(name + "End"))
	s.mask = &tail
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
	TEXT("swiGLUAVX512", NOSPLIT, "func(dst, gate, up *float32, n int)")
	s, exp, sign := newSpan([]string{"dst", "gate", "up"}, ""), newExponential(), splat(1<<31)
	s.loop("loop", func(s *span) {
		gate, e := s.read("gate"), ZMM()
		VPXORD(sign, gate, e)
		exp.of(e)
		VADDPS(exp.one, e, e)
		VDIVPS(e, gate, gate)
		VMULPS(s.read("up"), gate, gate)
		s.write(gate, "dst")
	})
	VZEROUPPER()
	RET()
}

// dot uses four accumulators in turn, 64 values per step, then only the first.
func dot() {
	TEXT("dotAVX512", NOSPLIT, "func(x, y *float32, n int) float32")
	s, sums, n, tail := newSpan([]string{"x", "y"}, ""), zmms(4), Arg("n"), tailMask("n")
	zero(sums)
	XORQ(s.at, s.at)
	Label("wide")
	SUBQ(operand.Imm(4*lanes), n)
	JLT(operand.LabelRef("few"))
	for i, sum := range sums {
		x := ZMM()
		VMOVUPS(s.mem("x").Offset(64*i), x)
		VFMADD231PS(s.mem("y").Offset(64*i), x, sum)
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
	s.mask = &tail
	VFMADD231PS(s.read("x"), s.read("y"), sums[0])
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	r := reduce(sums[0], addPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}

func addPS(a, b, c reg.Register) { VADDPS(a, b, c) }

func maxPS(a, b, c reg.Register) { VMAXPS(a, b, c) }

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
	TEXT("expSumAVX512", NOSPLIT, "func(x *float32, scale float32, n int) float32")
	s, exp := newSpan([]string{"x"}, "scale"), newExponential()
	top, sum := float(math.Inf(-1)), ZMM()
	VXORPS(sum, sum, sum)
	s.loop("max", func(s *span) {
		v := s.read("x")
		VMULPS(s.scalar, v, v)
		if s.mask == nil {
			VMAXPS(v, top, top)
		} else {
			VMAXPS(v, top, *s.mask, top)
		}
	})
	VBROADCASTSS(reduce(top, maxPS), top)
	s.loop("exp", func(s *span) {
		v := s.read("x")
		VFMSUB213PS(top, s.scalar, v)
		exp.of(v)
		if s.mask == nil {
			VADDPS(v, sum, sum)
		} else {
			VADDPS(v, sum, *s.mask, sum)
		}
		s.write(v, "x")
	})
	r := reduce(sum, addPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}

// halves emits the conversion of float32 to half floats.
func halves() {
	TEXT("floatsToHalvesAVX512", NOSPLIT, "func(dst *uint16, src *float32, n int)")
	s := newSpan([]string{"dst", "src"}, "")
	s.loop("loop", func(s *span) {
		halves := operand.Mem{Base: s.ptr["dst"], Index: s.at, Scale: 2}
		if s.mask == nil {
			VCVTPS2PH(operand.Imm(0), s.read("src"), halves)
			return
		}
		h := YMM()
		VCVTPS2PH(operand.Imm(0), s.read("src"), h)
		VMOVDQU16(h, *s.mask, halves)
	})
	VZEROUPPER()
	RET()
}
