package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemvs emits the products of whole tiles of 16 rows with one vector. An unpacked panel would be used only once, so
// weights stay in registers. The float operations and their order are those of the panels.
func gemvs() {
	gemv("Q80", 34, 1, stepQ80)
	gemvQ40()
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
	g := gemvOf(kind, size, acts)
	var offsets operand.Mem
	if acts == 1 {
		g.Before = func(rows Rows) { offsets = rowOffsets(rows) }
	}
	g.Emit(func(s Step) { do(step{s, offsets}) })
}

func gemvOf(kind string, size, acts int) Gemv {
	return Gemv{Name: "gemv" + kind + "AVX512", Lanes: lanes, Sum: ZMM, Size: size, Acts: acts}
}

// gemvQ40 emits the kernel of Q4_0, which multiplies four blocks at once where there are as many.
func gemvQ40() {
	g := gemvOf("Q40", 18, 1)
	var offsets operand.Mem
	var others []reg.OpmaskVirtual
	g.Before = func(rows Rows) {
		offsets = rowOffsets(rows)
		for r := 1; r < 4; r++ {
			bits, k := GP32(), K()
			MOVL(operand.U32(0x11111111<<r), bits)
			KMOVD(bits, k)
			others = append(others, k)
		}
	}
	g.Many, g.DoMany = 4, func(s Step) { step{s, offsets}.fourQ40(others) }
	g.Emit(func(s Step) { stepQ40(step{s, offsets}) })
}

// rowOffsets returns the offsets of the rows of a tile, in bytes, as dwords on the stack.
func rowOffsets(rows Rows) operand.Mem {
	at, z := AllocLocal(4*lanes), ZMM()
	VPBROADCASTD(rows.Stride.As32(), z)
	VPMULLD(table("sequence", 32, func(i int) int { return i }), z, z)
	VMOVDQU32(z, at)
	return at
}

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

// fourQ40 multiplies four blocks, which of one row fill a register: the sums over the columns take less than transposing
// the weights. The masks others select word 1, 2 or 3 of every four.
func (s step) fourQ40(others []reg.OpmaskVirtual) {
	low := splat(0x0f0f0f0f)
	values := load(table("valuesQ40", 16, func(i int) int { // of block i/8, in two registers that are four words apart
		if i >= 3*8 {
			return 32 + 9*3 + 1 + i%8 - 4
		}
		return 9*(i/8) + 1 + i%8
	}))
	firsts := load(table("firstsQ40", 16, func(i int) int { return 9 * (i / 8) }))
	x := [2]reg.VecVirtual{ZMM(), ZMM()} // the first and the last 16 columns of the blocks
	for i, z := range x {
		VBROADCASTI32X4(Mem(s.Act, 16*i), z)
		for b := 1; b < 4; b++ {
			VINSERTI32X4(operand.Imm(uint64(b)), Mem(s.Act, b*ActSize+16*i), z, z)
		}
	}
	start := minus(8, x[:]...)
	quads, halves := zmms(4), zmms(4)
	for q := range quads {
		ints := zmms(4)
		for i, sum := range ints {
			w, high := ZMM(), ZMM()
			VMOVDQU16(s.Rows.At(4*q+i, 0), w)
			if i == 0 {
				VPERMW(w, firsts, halves[q])
			} else {
				VPERMW(w, firsts, others[i-1], halves[q])
			}
			VPERMT2W(s.Rows.At(4*q+i, 8), values, w)
			VPSRLW(operand.Imm(4), w, high)
			VPANDD(low, w, w)
			VPANDD(low, high, high)
			VMOVDQA64(start, sum)
			dotBytes(x[0], w, sum)
			dotBytes(x[1], high, sum)
			s.Next.Fetch(4*q+i+1, 16)
		}
		quads[q] = sumLanes(ints)
	}
	VPUNPCKLQDQ(halves[1], halves[0], halves[0])
	VPUNPCKLQDQ(halves[3], halves[2], halves[1])
	for b, ints := range transposeLanes(quads) {
		both, scale := ZMM(), ZMM() // lane b of the halves of rows 0 to 7 and 8 to 15
		VSHUFI32X4(operand.Imm(uint64(0x55*b)), halves[1], halves[0], both)
		VSHUFI32X4(operand.Imm(0x08), both, both, both)
		VCVTPH2PS(both.AsY(), scale)
		s.addScaled(ints, scale, b)
	}
}

// minus returns -n times the sums of the four signed bytes of each dword of x.
func minus(n uint32, x ...reg.VecVirtual) reg.VecVirtual {
	sum, zeros, times := ZMM(), ZMM(), splat(n*0x01010101)
	Zero(sum, zeros)
	for _, z := range x {
		dotBytes(z, times, sum)
	}
	VPSUBD(sum, zeros, sum)
	return sum
}

// sumLanes sums the dwords of each 128-bit lane of four registers: dword r of the result is the sum of register r.
func sumLanes(z []reg.VecVirtual) reg.VecVirtual {
	pairs := zmms(2)
	for i := range pairs {
		low, high := ZMM(), pairs[i]
		VPUNPCKLDQ(z[2*i+1], z[2*i], low)
		VPUNPCKHDQ(z[2*i+1], z[2*i], high)
		VPADDD(low, high, high)
	}
	low, high := ZMM(), ZMM()
	VPUNPCKLQDQ(pairs[1], pairs[0], low)
	VPUNPCKHQDQ(pairs[1], pairs[0], high)
	VPADDD(low, high, high)
	return high
}

// transposeLanes transposes 4 by 4 lanes of 128 bits.
func transposeLanes(z []reg.VecVirtual) []reg.VecVirtual {
	even, odd, out := zmms(2), zmms(2), zmms(4)
	for i := range 2 {
		VSHUFI32X4(operand.Imm(0x88), z[2*i+1], z[2*i], even[i])
		VSHUFI32X4(operand.Imm(0xdd), z[2*i+1], z[2*i], odd[i])
	}
	for i, pair := range [][]reg.VecVirtual{even, odd} {
		VSHUFI32X4(operand.Imm(0x88), pair[1], pair[0], out[i])
		VSHUFI32X4(operand.Imm(0xdd), pair[1], pair[0], out[i+2])
	}
	return out
}

func stepQ40(s step) {
	low, ints, scale := ZMM(), zmms(2), s.halfScale()
	VPBROADCASTD(dword(0x0f0f0f0f), low)
	s.offset(ints[0], ActOff, 4) // -8·Σq
	Zero(ints[1])
	for k, z := range columns16(s.Rows, 2) {
		for i, v := range nibbles(z) {
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
		Zero(ints...)
		for k, z := range columns32(s.Rows, values+32*j) {
			for i, v := range nibbles(z) {
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
	for half := range 2 {
		s.halfQ6K(half, tmp)
	}
}

// halfQ6K multiplies four of the eight blocks. A register holds 64 columns of a row: the sums over the columns take less
// than transposing the weights. Sums of four products fit into 16 bits, in which they are multiplied by the scales.
func (s step) halfQ6K(half int, d operand.Mem) {
	low := splat(0x0f0f0f0f)
	// the top bits of a byte belong to four blocks: the lower half of a register takes those of block 0 and 2, the upper
	// one those of 1 and 3
	tops := load(table("topsQ6K", 16, func(i int) int { return 0x3333 << (2 * (i / 16)) }))
	left := load(table("leftQ6K", 16, func(i int) int { return 4 - 2*(i/16) }))
	right := load(table("rightQ6K", 16, func(i int) int { return 2 * (i / 16) }))
	scales := load(table(fmt.Sprint("scalesQ6K", half), 16, func(i int) int { // of 16 columns, in the high byte
		return (8*half+4*(i%8/4)+i/8)<<8 | 0x80
	}))
	x, start := zmms(2), zmms(2) // the columns of blocks 0 and 1, and of 2 and 3
	for i := range x {
		VBROADCASTI64X4(Mem(s.Act, (4*half+2*i)*ActSize), x[i])
		VINSERTI64X4(operand.Imm(1), Mem(s.Act, (4*half+2*i+1)*ActSize), x[i], x[i])
		start[i] = minus(32, x[i])
	}
	rows, quads := zmms(4), zmms(4)
	for r := range lanes {
		top, w, high, shifted, scale, ints := ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), zmms(2)
		VBROADCASTI64X4(s.Rows.At(r, 128+32*half), top)
		VMOVDQU32(s.Rows.At(r, 64*half), w)
		VPANDD(tops, top, top)
		VPSRLW(operand.Imm(4), w, high)
		VPSLLVW(left, top, shifted)
		VPSRLVW(right, top, top)
		for i, v := range [][2]reg.VecVirtual{{w, shifted}, {high, top}} {
			VPTERNLOGD(operand.Imm(0xe2), v[1], low, v[0]) // v[0] & low | v[1] &^ low
			VMOVDQA64(start[i], ints[i])
			dotBytes(x[i], v[0], ints[i])
		}
		VPACKSSDW(ints[1], ints[0], rows[r%4])
		VBROADCASTI32X4(s.Rows.At(r, 192), scale)
		VPSHUFB(scales, scale, scale)
		VPMADDWD(scale, rows[r%4], rows[r%4])
		s.Next.Fetch(16*half+r+1, 32)
		for line := range 2 { // of the next block, from the second-level cache: wide loads wait long for a line
			PREFETCHT0(s.Rows.At(r, 210+128*half+CacheLine*line))
		}
		if r%4 == 3 {
			quads[r/4] = sumQ6K(rows)
			rows = zmms(4)
		}
	}
	for b, ints := range blocksQ6K(quads) {
		scale := ZMM()
		VCVTPH2PS(d, scale)
		s.addScaled(ints, scale, 4*half+b)
	}
}

// sumQ6K sums the products of four rows, which are multiplied by 256 times their scales: in each 128-bit lane two dwords
// of block 0 and two of block 2, in the upper half of blocks 1 and 3. The sum of both just fits: 4 times 4·32·127·128·256
// is below 1<<31.
func sumQ6K(rows []reg.VecVirtual) reg.VecVirtual {
	pairs := zmms(2)
	for i := range pairs {
		pairs[i] = addOdd(rows[2*i:], VSHUFPS)
		VPSRAD(operand.Imm(8), pairs[i], pairs[i])
	}
	return addOdd(pairs, VSHUFI32X4)
}

// blocksQ6K returns the sums of four blocks: lane r of each is row r.
func blocksQ6K(quads []reg.VecVirtual) [4]reg.VecVirtual {
	var blocks [4]reg.VecVirtual
	for odd := range 2 { // blocks 0 and 1, then 2 and 3
		out := zmms(2)
		for i := range out {
			VMOVDQU32(table(fmt.Sprint("blocksQ6K", odd), 32, func(i int) int {
				return i%8/4*16 + i%4/2*8 + i/8*4 + i%2*2 + odd
			}), out[i])
			VPERMI2D(quads[2*i+1], quads[2*i], out[i])
		}
		for i, halves := range []uint64{0x44, 0xee} {
			z := ZMM()
			VSHUFI64X2(operand.Imm(halves), out[1], out[0], z)
			blocks[2*odd+i] = z
		}
	}
	return blocks
}

// addOdd returns the even elements of two registers plus the odd ones.
func addOdd(z []reg.VecVirtual, shuffle func(ops ...operand.Op)) reg.VecVirtual {
	even, odd := ZMM(), ZMM()
	shuffle(operand.Imm(0x88), z[1], z[0], even)
	shuffle(operand.Imm(0xdd), z[1], z[0], odd)
	VPADDD(odd, even, even)
	return even
}

// addLanes sums the eight lanes of each half of z. Lane r of the result is row r, if the registers hold the rows 0|4,
// 1|5, 2|6, 3|7, 8|12, 9|13, 10|14, 11|15.
func addLanes(z []reg.VecVirtual) reg.VecVirtual {
	return addOdd([]reg.VecVirtual{sumLanes(z[:4]), sumLanes(z[4:])}, VSHUFI64X2)
}
