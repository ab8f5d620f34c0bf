package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemv emits the product of whole tiles of 16 Q8_0 rows with one vector. An unpacked panel would be used only once, so
// it sums each row's integers across the lanes instead. The float operations and their order are those of the panels.
func gemv() {
	TEXT("gemvQ80AVX512", NOSPLIT, "func(dst *float32, base *byte, stride, tiles, blocks int, act *byte)")
	scales := AllocLocal(32 * Collected)
	dst, t, flip, sum := Arg("dst"), RowsAt("base", "stride", lanes, 0), splat(0x80808080), ZMM()
	tiles, left, act := GP64(), GP64(), GP64()
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("blocks"), left)
	Load(Param("act"), act)
	VXORPS(sum, sum, sum)
	Label("chunk")
	n, at := t.CollectScales(left, 34, scales)
	Label("block")
	gemvBlock(t, act, flip, operand.Mem{Base: at}, sum)
	t.Advance(Imm(34))
	ADDQ(operand.Imm(ActSize), act)
	ADDQ(operand.Imm(32), at)
	DECQ(left)
	DECQ(n)
	JNZ(operand.LabelRef("block"))
	TESTQ(left, left)
	JNZ(operand.LabelRef("chunk"))
	VMOVUPS(sum, Mem(dst, 0))
	ADDQ(Imm(4*lanes), dst)
	skip := GP64() // the row pointers are at the row ends: continue from row 15 of this tile
	MOVQ(t.Stride, skip)
	SHLQ(operand.Imm(4), skip)
	SUBQ(t.Stride, skip)
	t.Advance(skip)
	DECQ(tiles)
	JNZ(operand.LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// gemvBlock adds the products of one block of 16 rows to sum.
func gemvBlock(t Rows, act reg.GPVirtual, flip reg.VecVirtual, scales operand.Mem, sum reg.VecVirtual) {
	x, ints := ZMM(), zmms(8)
	VBROADCASTI64X4(Mem(act, 0), x)
	for i, r := range []int{0, 1, 2, 3, 8, 9, 10, 11} {
		w := ZMM()
		VBROADCASTI64X4(t.At(r, 2), w)
		VINSERTI64X4(operand.Imm(1), t.At(r+4, 2), w, w)
		VPXORD(flip, w, w)
		VXORPS(ints[i], ints[i], ints[i])
		dotBytes(x, w, ints[i])
	}
	total, scale := addLanes(ints), ZMM()
	VPADDD_BCST(Mem(act, ActOff), total, total)
	VCVTDQ2PS(total, total)
	VCVTPH2PS(scales, scale)
	VMULPS_BCST(Mem(act, ActScale), scale, scale)
	VFMADD231PS(scale, total, sum)
}

// addLanes sums the eight lanes of each half of z. Lane r of the result is row r, if the registers hold the rows 0|4,
// 1|5, 2|6, 3|7, 8|12, 9|13, 10|14, 11|15.
func addLanes(z []reg.VecVirtual) reg.VecVirtual {
	pairs := []reg.VecVirtual{}
	for i := 0; i < 8; i += 2 {
		low, high := ZMM(), ZMM()
		VPUNPCKLDQ(z[i+1], z[i], low)
		VPUNPCKHDQ(z[i+1], z[i], high)
		VPADDD(high, low, low)
		pairs = append(pairs, low)
	}
	quads := []reg.VecVirtual{}
	for i := 0; i < 4; i += 2 {
		low, high := ZMM(), ZMM()
		VPUNPCKLQDQ(pairs[i+1], pairs[i], low)
		VPUNPCKHQDQ(pairs[i+1], pairs[i], high)
		VPADDD(high, low, low)
		quads = append(quads, low)
	}
	low, high := ZMM(), ZMM()
	VSHUFI64X2(operand.Imm(0x88), quads[1], quads[0], low)
	VSHUFI64X2(operand.Imm(0xdd), quads[1], quads[0], high)
	VPADDD(high, low, low)
	return low
}
