package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemvs emits the products of whole tiles of 8 rows with one vector. An unpacked panel would be used only once, so
// weights stay in registers, without their offset: small and not negative, several products fit into 16 bits. The float
// operations and their order are those of the panels.
func gemvs() {
	gemv("Q80", 34, 1, stepQ80)
	gemv("Q40", 18, 1, stepQ40)
	gemv("Q4K", layoutQ4K.size, 8, func(s step) { s.stepK(layoutQ4K) })
	gemv("Q5K", layoutQ5K.size, 8, func(s step) { s.stepK(layoutQ5K) })
	gemv("Q6K", layoutQ6K.size, 8, stepQ6K)
}

type step struct{ Step }

// gemv emits the kernel of a type whose blocks have size bytes and acts times 32 columns.
func gemv(kind string, size, acts int, do func(step)) {
	g := Gemv{Name: "gemv" + kind + "AVX2", Lanes: lanes, Sum: YMM, Size: size, Acts: acts, Collect: acts == 1}
	g.Emit(func(s Step) { do(step{s}) })
}

// all returns the address of eight copies of a dword, where registers are scarce.
func all(bits uint32) operand.Mem {
	return constant(fmt.Sprintf("all%08xAVX2", bits), func(int) uint32 { return bits })
}

const (
	lowNibbles = 0x0f0f0f0f
	ones       = 0x00010001 // of 16 bits
)

// products adds, in 16 bits, dword k of the activations of a block times the unsigned bytes of w to sum. The first
// product sets sum.
func (s step) products(block, k int, w, sum reg.VecVirtual, first bool) {
	x := YMM()
	VPBROADCASTD(Mem(s.Act, block*ActSize+4*k), x)
	if first {
		VPMADDUBSW(x, w, sum)
		return
	}
	VPMADDUBSW(x, w, x)
	VPADDW(x, sum, sum)
}

// widen returns the sums of the pairs of 16 bits in sum.
func widen(sum reg.VecVirtual) reg.VecVirtual {
	VPMADDWD(all(ones), sum, sum)
	return sum
}

// offset returns ints minus Σq of the activations times 128 and divided by a power of two; -128·Σq is at off.
func (s step) offset(ints reg.VecVirtual, off, shift int) reg.VecVirtual {
	sum := YMM()
	VPBROADCASTD(Mem(s.Act, off), sum)
	VPSRAD(operand.Imm(uint64(shift)), sum, sum)
	VPADDD(sum, ints, ints)
	return ints
}

// addScaled adds the integer sums of a block, times the weights' and the activations' scales, to the float sums.
func (s step) addScaled(ints reg.VecVirtual, scale operand.Op, block int) {
	v := YMM()
	VCVTDQ2PS(ints, ints)
	VBROADCASTSS(Mem(s.Act, block*ActSize+ActScale), v)
	VMULPS(scale, v, v)
	VFMADD231PS(v, ints, s.Sum)
}

func (s step) halfScale() reg.VecVirtual {
	scale := YMM()
	VCVTPH2PS(s.Scales, scale)
	return scale
}

// stepQ80 sums each row's integers across the lanes: that takes less than transposing the weights.
func stepQ80(s step) {
	x, ints := YMM(), ymms(lanes)
	VMOVDQU(Mem(s.Act, 0), x)
	for r, y := range ints {
		w := YMM()
		VMOVDQU(s.Rows.At(r, 2), w)
		VPSIGNB(w, x, y)
		VPABSB(w, w)
		VPMADDUBSW(y, w, y)
		widen(y)
		s.Next.Fetch(r+1, lanes)
	}
	for n := lanes; n > 2; n /= 2 {
		for i := range n / 2 {
			VPHADDD(ints[2*i+1], ints[2*i], ints[i])
		}
	}
	high := YMM()
	VPERM2I128(operand.Imm(0x31), ints[1], ints[0], high)
	VPERM2I128(operand.Imm(0x20), ints[1], ints[0], ints[0])
	VPADDD(high, ints[0], ints[0])
	s.addScaled(ints[0], s.halfScale(), 0)
}

func stepQ40(s step) {
	low, sum := splat(lowNibbles), YMM()
	for k, y := range columns16(s.Rows, 2) {
		for i, w := range nibbles(y, low) {
			s.products(0, k+4*i, w, sum, k+i == 0) // 8 times 2·15·128 at most
		}
		s.Next.Fetch(k+1, 4)
	}
	s.addScaled(s.offset(widen(sum), ActOff, 4), s.halfScale(), 0)
}

// layoutK describes the values of K-quants. Their low bits are four in each half of a byte.
type layoutK struct {
	size  int  // of a block of 256 columns, in bytes
	low   int  // offset of the low bits
	apart int  // distance of the two blocks of 32 columns that share bytes of low bits
	top   int  // offset of the top bits
	halve bool // whether the halves of the columns have different bytes of top bits
	bits  int  // number of top bits
}

var (
	layoutQ4K = layoutK{size: 144, low: 16, apart: 1}
	layoutQ5K = layoutK{size: 176, low: 48, apart: 1, top: 16, bits: 1}
	layoutQ6K = layoutK{size: 210, apart: 2, top: 128, halve: true, bits: 2}
)

// topBits returns the offset of the top bits of a block in half of the columns, and how far they are shifted left.
func (l layoutK) topBits(half, block int) (at, shift int) {
	if l.halve {
		return l.top + 32*half, 4 - l.bits*block
	}
	return l.top, 4 - l.bits*(4*half+block)
}

// productsK calls do for each of the eight blocks of 32 columns, with the sums of rows 0 to 3 and of rows 4 to 7. A
// register holds the columns of a row: the sums over the columns take less than transposing the weights. In each 128-bit
// lane of a sum, which is that of 16 columns, dword r belongs to row r. Its words each sum up eight products.
func (s step) productsK(l layoutK, do func(block int, low, high reg.VecVirtual)) {
	quads := AllocLocal(4 * 32)
	for half := range 2 {
		sums := s.fourRowsK(l, half, 0)
		keep(sums[:], quads)
		for block, high := range s.fourRowsK(l, half, 4) {
			low := YMM()
			VMOVDQU(quads.Offset(32*block), low)
			do(4*half+block, low, high)
		}
	}
}

// fourRowsK sums up the products of four rows with half of the columns, for each block.
func (s step) fourRowsK(l layoutK, half, first int) (sums [4]reg.VecVirtual) {
	low, selected := YMM(), YMM()
	VMOVDQU(all(lowNibbles), low)
	if l.bits > 0 {
		VMOVDQU(all((1<<l.bits-1)<<4*0x01010101), selected)
	}
	var pairs [2][4]reg.VecVirtual
	for r := range 4 {
		s.rowK(l, half, first+r, low, selected, func(block int, w reg.VecVirtual) {
			sum := YMM()
			VPMADDUBSW(Mem(s.Act, (4*half+block)*ActSize), w, sum)
			switch r {
			case 0, 2:
				pairs[r/2][block] = sum
			case 1:
				pairs[0][block] = addQuads(pairs[0][block], sum)
			case 3:
				sums[block] = addDoubles(pairs[0][block], addQuads(pairs[1][block], sum))
			}
		})
		s.Next.Fetch(8*half+first+r+1, 16)
		for line := half * l.size / 2; line < (half+1)*l.size/2; line += CacheLine { // from the second-level cache
			PREFETCHT0(s.Rows.At(first+r, 2*l.size+line))
		}
	}
	return sums
}

// rowK calls do with the values of each of the four blocks in half of the columns of a row.
func (s step) rowK(l layoutK, half, row int, low, selected reg.VecVirtual, do func(block int, w reg.VecVirtual)) {
	top := YMM()
	if l.bits > 0 {
		at, _ := l.topBits(half, 0)
		VMOVDQU(s.Rows.At(row, at), top)
	}
	for part := range 2 {
		y := YMM()
		VMOVDQU(s.Rows.At(row, l.low+64*half+32*part), y)
		for i, w := range nibbles(y, low) {
			block := (3-l.apart)*part + l.apart*i
			if l.bits > 0 {
				_, shift := l.topBits(half, block)
				orBits(top, shift, selected, w)
			}
			do(block, w)
		}
	}
}

// addQuads adds, as words, the two qwords of each lane of a, and of b.
func addQuads(a, b reg.VecVirtual) reg.VecVirtual {
	even, odd := YMM(), YMM()
	VPBLENDD(operand.Imm(0xcc), b, a, even)
	VPALIGNR(operand.Imm(8), a, b, odd)
	VPADDW(odd, even, even)
	return even
}

// addDoubles adds, as words, the even and the odd dwords of a and b.
func addDoubles(a, b reg.VecVirtual) reg.VecVirtual {
	even, odd := YMM(), YMM()
	VSHUFPS(operand.Imm(0x88), b, a, even)
	VSHUFPS(operand.Imm(0xdd), b, a, odd)
	VPADDW(odd, even, even)
	return even
}

// halvesK returns the sums of 8 rows over the first and the last 16 columns of a block.
func halvesK(low, high reg.VecVirtual) []reg.VecVirtual {
	half := ymms(2)
	VPERM2I128(operand.Imm(0x20), high, low, half[0])
	VPERM2I128(operand.Imm(0x31), high, low, half[1])
	return half
}

// stepK multiplies blocks of Q4_K or Q5_K.
func (s step) stepK(l layoutK) {
	scales := AllocLocal(2 * 8 * 32)
	scaleAt := func(which, j int) operand.Mem { return scales.Offset(32 * (2*j + which)) }
	scalesK(s.Rows, scaleAt)
	s.productsK(l, func(block int, low, high reg.VecVirtual) {
		half := halvesK(low, high)
		if l.bits == 0 { // 16 times 15·127 fits
			VPADDW(half[1], half[0], half[0])
			widen(half[0])
		} else {
			widen(half[0])
			widen(half[1])
			VPADDD(half[1], half[0], half[0])
		}
		s.addScaled(half[0], scaleAt(0, block), block)
		sum := YMM()
		VBROADCASTSS(Mem(s.Act, block*ActSize+ActSum), sum)
		VFNMADD231PS(scaleAt(1, block), sum, s.Sum)
	})
}

// stepQ6K multiplies by weights+32. Words wrap around, but fit without the offset.
func stepQ6K(s step) {
	scales, halves, d := AllocLocal(4*32), AllocLocal(2*lanes), AllocLocal(32)
	s.Rows.CopyHalves(208, halves) // ahead of their use, as in CollectScales
	keep(columns16(s.Rows, 192), scales)
	s.productsK(layoutQ6K, func(block int, low, high reg.VecVirtual) {
		if block == 0 {
			scale := YMM()
			VCVTPH2PS(halves, scale)
			VMULPS(all(Bits(1.0/256)), scale, scale)
			VMOVUPS(scale, d)
		}
		sums := halvesK(low, high)
		for i, sum := range sums {
			offset, scale, at := YMM(), YMM(), 2*block+i
			VPBROADCASTD(Mem(s.Act, block*ActSize+ActOff32+4*i), offset)
			VPSUBW(offset, sum, sum)
			VMOVDQU(scales.Offset(32*(at/4)), scale)
			VPSHUFB(highBytes(at%4), scale, scale)
			VPMADDWD(scale, sum, sum) // 256 times the scaled sums, just below 1<<31
			VCVTDQ2PS(sum, sum)
		}
		VADDPS(sums[1], sums[0], sums[0]) // exact
		v := YMM()
		VBROADCASTSS(Mem(s.Act, block*ActSize+ActScale), v)
		VMULPS(d, v, v)
		VFMADD231PS(v, sums[0], s.Sum)
	})
}

// highBytes returns a shuffle that copies byte i of each dword to the high bytes of both words.
func highBytes(i int) operand.Mem {
	return constant(fmt.Sprintf("highBytes%dAVX2", i), func(dword int) uint32 {
		return uint32(4*(dword%4)+i)<<8*0x00010001 | 0x00800080
	})
}
