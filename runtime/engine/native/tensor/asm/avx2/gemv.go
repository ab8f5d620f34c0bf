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
	gemv("Q4K", 144, 8, func(s step) { s.nibblesK(16, false) })
	gemv("Q5K", 176, 8, func(s step) { s.nibblesK(48, true) })
	gemv("Q6K", 210, 8, stepQ6K)
}

type step struct{ Step }

// gemv emits the kernel of a type whose blocks have size bytes and acts times 32 columns.
func gemv(kind string, size, acts int, do func(step)) {
	g := Gemv{Name: "gemv" + kind + "AVX2", Lanes: lanes, Sum: YMM, Size: size, Acts: acts, Collect: acts == 1}
	g.Emit(func(s Step) { do(step{s}) })
}

var repeated = map[uint32]operand.Mem{}

// all returns the address of eight copies of a dword, where registers are scarce.
func all(bits uint32) operand.Mem {
	if _, ok := repeated[bits]; !ok {
		repeated[bits] = constant(fmt.Sprintf("all%08xAVX2", bits), func(int) uint32 { return bits })
	}
	return repeated[bits]
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

// nibblesK multiplies blocks of Q4_K or, with fifth set, of Q5_K, whose low bits start at values.
func (s step) nibblesK(values int, fifth bool) {
	scales, kept, group := AllocLocal(2*8*32), operand.Mem{}, 8 // times 2·15·128 at most
	scaleAt := func(which, j int) operand.Mem { return scales.Offset(32 * (2*j + which)) }
	scalesK(s.Rows, scaleAt)
	if fifth {
		kept, group = AllocLocal(8*32), 4 // times 2·31·128 at most
		keep(columns32(s.Rows, 16), kept)
	}
	for j := range 4 {
		sums, ints := ymms(2), [2]reg.VecVirtual{}
		for k, y := range columns32(s.Rows, values+32*j) {
			for i, w := range nibbles(y, all(lowNibbles)) {
				if fifth {
					orBits(kept.Offset(32*k), 4-(2*j+i), all(0x10101010), w)
				}
				s.products(2*j+i, k, w, sums[i], k%group == 0)
				if k%group == group-1 {
					ints[i] = addWidened(ints[i], sums[i])
					sums[i] = YMM()
				}
			}
			s.Next.Fetch(8*j+k+1, 32)
		}
		for i, v := range ints {
			block := 2*j + i
			s.addScaled(v, scaleAt(0, block), block)
			sum := YMM()
			VBROADCASTSS(Mem(s.Act, block*ActSize+ActSum), sum)
			VFNMADD231PS(scaleAt(1, block), sum, s.Sum)
		}
	}
}

// addWidened returns ints, unless nil, plus the sums of the pairs of 16 bits in sum.
func addWidened(ints, sum reg.VecVirtual) reg.VecVirtual {
	widen(sum)
	if ints != nil {
		VPADDD(ints, sum, sum)
	}
	return sum
}

func stepQ6K(s step) {
	scales, kept, tmp := AllocLocal(16*32), AllocLocal(8*32), AllocLocal(2*lanes)
	scaleAt := func(i int) operand.Mem { return scales.Offset(32 * i) }
	scalesQ6K(s.Rows, tmp, scaleAt)
	for half := range 2 {
		keep(columns32(s.Rows, 128+32*half), kept)
		var ints [8]reg.VecVirtual
		add := func(block int) { // in order
			for i, v := range ints[2*block : 2*block+2] {
				s.addScaled(v, scaleAt(8*half+2*block+i), 4*half+block)
			}
		}
		for part := range 2 {
			sums := ymms(2)
			for k, y := range columns32(s.Rows, 64*half+32*part) {
				for i, w := range nibbles(y, all(lowNibbles)) {
					block := part + 2*i
					orBits(kept.Offset(32*k), 4-2*block, all(0x30303030), w)
					s.products(4*half+block, k, w, sums[i], k%2 == 0) // twice 2·63·128 at most
					if at := 2*block + k/4; k%2 == 1 {
						ints[at] = addWidened(ints[at], sums[i])
						sums[i] = YMM()
						if k%4 == 3 {
							s.offset(ints[at], (4*half+block)*ActSize+ActOff0+(ActOff1-ActOff0)*(k/4), 2)
						}
					}
				}
				s.Next.Fetch(16*half+8*part+k+1, 32)
			}
			add(part)
		}
		add(2)
		add(3)
	}
}
