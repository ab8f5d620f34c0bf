package main

import (
	. "github.com/llmtop/llmtop/runtime/native/tensor/asm/emit"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantizes writes the rounding of activations to 8 bits.
func quantizes() {
	quantizeQ80()
	quantizeQ8K()
}

// quantizer holds the constants of the kernels below.
type quantizer struct {
	ones, magnitude reg.VecVirtual
	range127        reg.VecVirtual // 127.0 in the first lane
}

func newQuantizer() quantizer {
	return quantizer{ones: splat(0x01010101), magnitude: splat(0x7fffffff), range127: float(127)}
}

// inverse is 127/amax, or 0 when amax is 0, in the first lane.
func (q quantizer) inverse(amax reg.VecVirtual) reg.VecVirtual {
	inverse, zeros, some := XMM(), XMM(), K()
	VXORPS(zeros, zeros, zeros)
	VCMPSS(operand.Imm(4), zeros, amax.AsX(), some) // not equal
	VDIVSS_Z(amax.AsX(), q.range127.AsX(), some, inverse)
	return inverse
}

// absolute is the largest magnitude among the 16*n values at x.
func (q quantizer) absolute(x []operand.Mem) reg.VecVirtual {
	var amax reg.VecVirtual
	for i, m := range x {
		v := ZMM()
		VPANDD(m, q.magnitude, v)
		if i == 0 {
			amax = v
		} else {
			VMAXPS(v, amax, amax)
		}
	}
	return reduce(amax, maxPS)
}

// block rounds the 32 values at x and fills the actBlock at dst. inverse and scale are in first lanes.
func (q quantizer) block(dst, x reg.GPVirtual, at int, dstAt int, inverse, scale reg.VecVirtual) {
	factor := ZMM()
	VBROADCASTSS(inverse.AsX(), factor)
	for i := range 2 {
		v := ZMM()
		VMULPS(Mem(x, at+64*i), factor, v)
		VCVTPS2DQ(v, v)
		VPMOVSDB(v, Mem(dst, dstAt+16*i))
	}
	q.sums(dst, dstAt, scale)
}

// sums completes the block whose bytes have been written.
func (q quantizer) sums(dst reg.GPVirtual, at int, scale reg.VecVirtual) {
	sums, low, high := YMM(), XMM(), XMM()
	VPXOR(sums, sums, sums)
	dotBytes(Mem(dst, at), q.ones.AsY(), sums)
	VPHADDD(sums, sums, sums)
	VPHADDD(sums, sums, sums) // lane 0: the first 16, lane 4: the others
	VEXTRACTI128(operand.Imm(1), sums, high)
	VPADDD(sums.AsX(), high, low)
	total := XMM()
	VCVTDQ2PS(low, total)
	VMULSS(scale.AsX(), total, total)
	VMOVSS(scale.AsX(), Mem(dst, at+ActScale))
	VMOVSS(total, Mem(dst, at+ActSum))
	for i, v := range []reg.VecVirtual{low, sums, high} {
		off, zeros := XMM(), XMM()
		VPSLLD(operand.Imm(7), v.AsX(), off)
		VPXOR(zeros, zeros, zeros)
		VPSUBD(off, zeros, off)
		VMOVD(off, Mem(dst, at+ActOff+4*i))
	}
}

func quantizeQ80() {
	TEXT("quantizeQ80AVX512", NOSPLIT, "func(dst *byte, x *float32, blocks int)")
	q := newQuantizer()
	dst, x, n := Arg("dst"), Arg("x"), Arg("blocks")
	Label("next")
	amax := q.absolute([]operand.Mem{Mem(x, 0), Mem(x, 64)})
	scale := XMM()
	VDIVSS(q.range127.AsX(), amax.AsX(), scale)
	VCVTPS2PH(operand.Imm(0), scale, scale)
	VCVTPH2PS(scale, scale)
	q.block(dst, x, 0, 0, q.inverse(amax), scale)
	ADDQ(Imm(ActSize), dst)
	ADDQ(Imm(4*32), x)
	DECQ(n)
	JNZ(operand.LabelRef("next"))
	VZEROUPPER()
	RET()
}

func quantizeQ8K() {
	TEXT("quantizeQ8KAVX512", NOSPLIT, "func(dst *byte, x *float32, blocks int)")
	q, one := newQuantizer(), float(1)
	dst, x, n := Arg("dst"), Arg("x"), Arg("blocks")
	SHRQ(operand.Imm(3), n)
	Label("next")
	var all []operand.Mem
	for i := range 16 {
		all = append(all, Mem(x, 64*i))
	}
	inverse := q.inverse(q.absolute(all))
	scale, zeros, some := XMM(), XMM(), K()
	VXORPS(zeros, zeros, zeros)
	VCMPSS(operand.Imm(4), zeros, inverse.AsX(), some)
	VDIVSS_Z(inverse.AsX(), one.AsX(), some, scale)
	for b := range 8 {
		q.block(dst, x, 128*b, ActSize*b, inverse, scale)
	}
	ADDQ(Imm(8*ActSize), dst)
	ADDQ(Imm(4*256), x)
	DECQ(n)
	JNZ(operand.LabelRef("next"))
	VZEROUPPER()
	RET()
}
