package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemvs emits the products of whole tiles of 16 rows with one vector. An unpacked panel would be used only once, so
// weights stay in registers. The float operations and their order are those of the panels.
func gemvs() {
	gemv("Q80", 34, 1, stepQ80)
	gemv("Q40", 18, 1, stepQ40)
	gemv("Q4K", 144, 8, func(s step) { s.nibblesK(16, false) })
	gemv("Q5K", 176, 8, func(s step) { s.nibblesK(48, true) })
	gemv("Q6K", 210, 8, stepQ6K)
}

type step struct {
	Step
	offsets operand.Mem // of the rows, for types whose blocks start with their scale
}

// gemv emits the kernel of a type whose blocks have size bytes and acts times 32 columns.
func gemv(kind string, size, acts int, do func(step)) {
	g := Gemv{Name: "gemv" + kind + "AVX512", Lanes: lanes, Sum: ZMM, Size: size, Acts: acts}
	var offsets operand.Mem
	if acts == 1 {
		g.Before = func(rows Rows) { offsets = rowOffsets(rows) }
	}
	g.Emit(func(s Step) { do(step{s, offsets}) })
}

// rowOffsets returns the offsets of the rows of a tile, in bytes, as dwords on the stack.
func rowOffsets(rows Rows) operand.Mem {
	at, z := AllocLocal(4*lanes), ZMM()
	VPBROADCASTD(rows.Stride.As32(), z)
	VPMULLD(sequence(), z, z)
	VMOVDQU32(z, at)
	return at
}

// sequence returns the address of the dwords 0, 1, 2, ….
func sequence() operand.Mem {
	if counted.Base == nil {
		counted = GLOBL("sequenceAVX512", RODATA|NOPTR)
		for i := range lanes {
			DATA(4*i, operand.U32(uint32(i)))
		}
	}
	return counted
}

var counted operand.Mem

// halfScale returns the scales at the start of the rows' blocks, which are half floats.
func (s step) halfScale() reg.VecVirtual {
	all, offsets, scale := K(), ZMM(), ZMM()
	KXNORW(all, all, all)
	VMOVDQU32(s.offsets, offsets)
	VPXORD(scale, scale, scale)
	VPGATHERDD(s.Rows.Gathered(offsets), all, scale)
	VPMOVDW(scale, scale.AsY())
	VCVTPH2PS(scale.AsY(), scale)
	return scale
}

// addScaled adds the integer sums of a block, times the weights' and the activations' scales, to the float sums.
func (s step) addScaled(ints, scale reg.VecVirtual, block int) {
	VCVTDQ2PS(ints, ints)
	VMULPS_BCST(Mem(s.Act, block*ActSize+ActScale), scale, scale)
	VFMADD231PS(scale, ints, s.Sum)
}

// dot adds the products of dword k of the activations of a block with the unsigned bytes of w to ints.
func (s step) dot(block, k int, w, ints reg.VecVirtual) {
	dotBytes(Mem(s.Act, block*ActSize+4*k), w, ints, "BCST")
}

// stepQ80 sums each row's integers across the lanes: that takes less than transposing the weights.
func stepQ80(s step) {
	flip, x, ints, scale := ZMM(), ZMM(), zmms(8), s.halfScale()
	VPBROADCASTD(dword(0x80808080), flip)
	VBROADCASTI64X4(Mem(s.Act, 0), x)
	for i, r := range []int{0, 1, 2, 3, 8, 9, 10, 11} {
		w := ZMM()
		VBROADCASTI64X4(s.Rows.At(r, 2), w)
		VINSERTI64X4(operand.Imm(1), s.Rows.At(r+4, 2), w, w)
		VPXORD(flip, w, w)
		VXORPS(ints[i], ints[i], ints[i])
		dotBytes(x, w, ints[i])
		s.Next.Fetch(i+1, 8)
	}
	total := addLanes(ints)
	VPADDD_BCST(Mem(s.Act, ActOff), total, total)
	s.addScaled(total, scale, 0)
}

func stepQ40(s step) {
	low, ints, scale := ZMM(), zmms(2), s.halfScale()
	VPBROADCASTD(dword(0x0f0f0f0f), low)
	s.offset(ints[0], ActOff, 4) // -8·Σq
	zero(ints[1:])
	for k, z := range columns16(s.Rows, 2) {
		high := ZMM()
		VPSRLW(operand.Imm(4), z, high)
		for i, v := range []reg.VecVirtual{z, high} {
			VPANDD(low, v, v)
			s.dot(0, k+4*i, v, ints[i])
		}
		s.Next.Fetch(k+1, 4)
	}
	VPADDD(ints[1], ints[0], ints[0])
	s.addScaled(ints[0], scale, 0)
}

// offset loads -128·Σq of the activations, which is at off, divided by a power of two.
func (s step) offset(ints reg.VecVirtual, off, shift int) {
	VPBROADCASTD(Mem(s.Act, off), ints)
	VPSRAD(operand.Imm(uint64(shift)), ints, ints)
}

// nibblesK multiplies blocks of Q4_K or, with fifth set, of Q5_K, whose low bits start at values.
func (s step) nibblesK(values int, fifth bool) {
	head, low, bit := headerK(s.Rows), splat(0x0f0f0f0f), splat(0x10101010)
	var fifths []reg.VecVirtual
	if fifth {
		fifths = columns32(s.Rows, 16)
	}
	for j := range 4 {
		ints := zmms(2)
		zero(ints)
		for k, z := range columns32(s.Rows, values+32*j) {
			high := ZMM()
			VPSRLW(operand.Imm(4), z, high)
			for i, v := range []reg.VecVirtual{z, high} {
				VPANDD(low, v, v)
				if fifth {
					orBit(fifths[k], 2*j+i, bit, v)
				}
				s.dot(2*j+i, k, v, ints[i])
			}
			s.Next.Fetch(8*j+k+1, 32)
		}
		for i, sum := range ints {
			s.addScaled(sum, head.unpack(0, 2*j+i), 2*j+i)
			VFNMADD231PS_BCST(Mem(s.Act, (2*j+i)*ActSize+ActSum), head.unpack(1, 2*j+i), s.Sum)
		}
	}
}

func stepQ6K(s step) {
	tmp := AllocLocal(32)
	s.Rows.CopyHalves(208, tmp) // ahead of their use, as in CollectScales
	var d reg.VecVirtual
	var scales []reg.VecVirtual
	for half := range 2 {
		ints, top := zmms(8), columns32(s.Rows, 128+32*half)
		for part := range 2 {
			for i := range 2 {
				block := part + 2*i
				s.offset(ints[2*block], (4*half+block)*ActSize+ActOff0, 2) // -32·Σq
				s.offset(ints[2*block+1], (4*half+block)*ActSize+ActOff1, 2)
			}
			for k, z := range columns32(s.Rows, 64*half+32*part) {
				high := ZMM()
				VPSRLW(operand.Imm(4), z, high)
				for i, v := range []reg.VecVirtual{z, high} {
					block := part + 2*i
					VPANDD_BCST(dword(0x0f0f0f0f), v, v)
					orTwoBits(top[k], block, dword(0x30303030), v)
					s.dot(4*half+block, k, v, ints[2*block+k/4])
				}
				s.Next.Fetch(16*half+8*part+k+1, 32)
			}
		}
		if half == 0 {
			d, scales = ZMM(), columns16(s.Rows, 192)
			VCVTPH2PS(tmp, d)
		}
		for i, sum := range ints {
			s.addScaled(sum, scaleQ6K(d, scales, 8*half+i), 4*half+i/2)
		}
	}
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
