package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantizeQ80 emits the rounding of activations to 8 bits, a block of 32 values at a time.
func quantizeQ80() {
	Kernel("quantizeQ80AVX2", "func(dst *byte, x *float32, blocks int)", "rounds blocks of 32 values, each to an actBlock.")
	ones, ones16, magnitude, range127 := splat(0x01010101), splat(0x00010001), splat(0x7fffffff), splat(Bits(127))
	dst, x, n := Arg("dst"), Arg("x"), Arg("blocks")
	Label("next")
	amax, scale := absolute(x, magnitude), XMM()
	VDIVSS(range127.AsX(), amax.AsX(), scale)
	VCVTPS2PH(operand.Imm(0), scale, scale)
	VCVTPH2PS(scale, scale)
	inverse := ratio(range127, amax)
	factor, v := YMM(), ymms(4)
	VBROADCASTSS(inverse.AsX(), factor)
	for i := range v {
		VMULPS(Mem(x, 32*i), factor, v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	bytes := YMM()
	VMOVDQU(order(), bytes)
	VPERMD(v[0], bytes, bytes)
	VMOVDQU(bytes, Mem(dst, 0))
	blockSums(dst, bytes, scale, ones, ones16)
	ADDQ(Imm(ActSize), dst)
	ADDQ(Imm(4*32), x)
	DECQ(n)
	JNZ(operand.LabelRef("next"))
	VZEROUPPER()
	RET()
}

// ratio returns a/b, or 0 if b is 0, in the first lane.
func ratio(a, b reg.VecVirtual) reg.VecVirtual {
	r, some := XMM(), XMM()
	VXORPS(some, some, some)
	VCMPSS(operand.Imm(4), some, b.AsX(), some) // not equal
	VDIVSS(b.AsX(), a.AsX(), r)
	VANDPS(some, r, r)
	return r
}

// absolute returns the largest magnitude of the block at x.
func absolute(x reg.GPVirtual, magnitude reg.VecVirtual) reg.VecVirtual {
	amax := YMM()
	VANDPS(Mem(x, 0), magnitude, amax)
	for i := lanes; i < 32; i += lanes {
		v := YMM()
		VANDPS(Mem(x, 4*i), magnitude, v)
		VMAXPS(v, amax, amax)
	}
	return reduce(amax, MaxPS)
}

// blockSums stores the scale and the sums of a block with the given bytes.
func blockSums(dst reg.GPVirtual, bytes, scale, ones, ones16 reg.VecVirtual) {
	sums, low, high, total := YMM(), XMM(), XMM(), XMM()
	VPMADDUBSW(bytes, ones, sums)
	for _, order := range []uint64{0x4e, 0xb1} { // even and odd pairs separately
		swapped := YMM()
		VPSHUFD(operand.Imm(order), sums, swapped)
		VPADDW(swapped, sums, sums)
	}
	off := YMM()
	VPSLLW(operand.Imm(5), sums, off)
	VMOVD(off.AsX(), Mem(dst, ActOff32))
	VEXTRACTI128(operand.Imm(1), off, high)
	VMOVD(high, Mem(dst, ActOff32+4))
	VPMADDWD(ones16, sums, sums) // lane 0: the first 16 values, lane 4: the others
	VEXTRACTI128(operand.Imm(1), sums, high)
	VPADDD(sums.AsX(), high, low)
	VCVTDQ2PS(low, total)
	VMULSS(scale.AsX(), total, total)
	VMOVSS(scale.AsX(), Mem(dst, ActScale))
	VMOVSS(total, Mem(dst, ActSum))
	for i, v := range []reg.VecVirtual{low, sums, high} {
		off, zeros := XMM(), XMM()
		VPSLLD(operand.Imm(7), v.AsX(), off)
		VPXOR(zeros, zeros, zeros)
		VPSUBD(off, zeros, off)
		VMOVD(off, Mem(dst, ActOff+4*i))
	}
}

// halves emits the conversion of n float32, a multiple of 8, to half floats.
func halves() {
	Kernel("floatsToHalvesAVX2", "func(dst []uint16, src []float32)", "converts a multiple of 8 values to half floats.")
	dst, src, n, y := Slice("dst"), Slice("src"), Length("src"), YMM()
	Label("next")
	VMOVUPS(Mem(src, 0), y)
	VCVTPS2PH(operand.Imm(0), y, Mem(dst, 0))
	ADDQ(operand.Imm(4*lanes), src)
	ADDQ(operand.Imm(2*lanes), dst)
	SUBQ(operand.Imm(lanes), n)
	JNZ(operand.LabelRef("next"))
	VZEROUPPER()
	RET()
}
