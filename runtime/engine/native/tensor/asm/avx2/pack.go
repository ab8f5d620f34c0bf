package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns16 reads 16 bytes at disp of every row: register k holds dword k of the 8 rows.
func columns16(t Rows, disp int) []reg.VecVirtual {
	y := ymms(4)
	for r := range 4 {
		VBROADCASTI128(t.At(r, disp), y[r])
		VINSERTI128(operand.Imm(1), t.At(r+4, disp), y[r], y[r])
	}
	Transpose4(y, YMM)
	return y
}

// columns32 reads 32 bytes at disp of every row: register k holds dword k of the 8 rows.
func columns32(t Rows, disp int) []reg.VecVirtual {
	y := ymms(8)
	for r := range y {
		VMOVDQU(t.At(r, disp), y[r])
	}
	Transpose4(y[:4], YMM)
	Transpose4(y[4:], YMM)
	for k := range 4 {
		low := YMM()
		VPERM2I128(operand.Imm(0x20), y[4+k], y[k], low)
		VPERM2I128(operand.Imm(0x31), y[4+k], y[k], y[4+k])
		y[k] = low
	}
	return y
}

// packs emits the kernels that convert 8 rows of up to 8 blocks of 32 columns to a panel.
func packs() {
	packQ80()
	packQ40()
	packQ4K(false)
	packQ4K(true)
	packQ6K()
}

func packQ80() {
	Kernel("packQ80AVX2", PackSignature, PackAbout)
	scales := AllocLocal(2 * lanes * Collected)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	_, at := t.CollectScales(blocks, 34, scales)
	t.Steps(blocks, panel, panelSize, 34, func(next *Ahead) {
		for k, y := range columns32(t, 2) {
			VMOVDQU(y, Mem(panel, 32*k))
			next.Fetch(k+1, 8)
		}
		vector.StoreScale(at, Mem(panel, panelScale))
	})
}

func packQ40() {
	Kernel("packQ40AVX2", PackSignature, PackAbout)
	scales := AllocLocal(2 * lanes * Collected)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	low, eight := splat(0x0f0f0f0f), splat(0x08080808)
	_, at := t.CollectScales(blocks, 18, scales)
	t.Steps(blocks, panel, panelSize, 18, func(next *Ahead) {
		for k, y := range columns16(t, 2) {
			for i, v := range nibbles(y, low) {
				VPSUBB(eight, v, v)
				VMOVDQU(v, Mem(panel, 32*(k+4*i)))
			}
			next.Fetch(k+1, 4)
		}
		vector.StoreScale(at, Mem(panel, panelScale))
	})
}

// nibbles splits the bytes of y into their low and high halves.
func nibbles(y reg.VecVirtual, low operand.Op) []reg.VecVirtual {
	high := YMM()
	VPSRLW(operand.Imm(4), y, high)
	VPAND(low, y, y)
	VPAND(low, high, high)
	return []reg.VecVirtual{y, high}
}

// packQ4K emits the kernel for whole blocks of 256 columns, of Q4_K or, with fifth set, of Q5_K, whose values have a
// fifth bit.
func packQ4K(fifth bool) {
	name, values, size := "packQ4KAVX2", 16, 144
	if fifth {
		name, values, size = "packQ5KAVX2", 48, 176
	}
	Kernel(name, PackSignature, PackAbout)
	kept := AllocLocal(32 * 8)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	SHRQ(operand.Imm(3), blocks)
	t.Steps(blocks, panel, 8*panelSize, size, func(next *Ahead) {
		scalesK(t, func(which, j int) operand.Mem { return Mem(panel, panelSize*j+panelScale+which*(panelMin-panelScale)) })
		if fifth {
			keep(columns32(t, 16), kept)
		}
		low, bit := splat(0x0f0f0f0f), splat(0x10101010)
		for j := range 4 {
			for k, y := range columns32(t, values+32*j) {
				for i, v := range nibbles(y, low) {
					if fifth {
						orKept(kept.Offset(32*k), 4-(2*j+i), bit, v)
					}
					VMOVDQU(v, Mem(panel, panelSize*(2*j+i)+32*k))
				}
				next.Fetch(8*j+k+1, 32)
			}
		}
	})
}

// keep stores registers in memory, because there are too few of them.
func keep(y []reg.VecVirtual, kept operand.Mem) {
	for k, v := range y {
		VMOVDQU(v, kept.Offset(32*k))
	}
}

// orBits adds the selected bits of the bytes of y, shifted left by some bits (or right by a negative number), to v.
func orBits(y reg.VecVirtual, shift int, selected operand.Op, v reg.VecVirtual) {
	b := YMM()
	switch {
	case shift > 0:
		VPSLLW(operand.Imm(uint64(shift)), y, b)
		VPAND(selected, b, b)
	case shift < 0:
		VPSRLW(operand.Imm(uint64(-shift)), y, b)
		VPAND(selected, b, b)
	default:
		VPAND(selected, y, b)
	}
	VPOR(b, v, v)
}

// orKept does the same with the bytes at m.
func orKept(m operand.Mem, shift int, selected operand.Op, v reg.VecVirtual) {
	y := YMM()
	VMOVDQU(m, y)
	orBits(y, shift, selected, v)
}

// scalesK unpacks the header of Q4_K and Q5_K blocks: dword 0 of a row holds two half floats, dwords 1 to 3 hold eight
// scales and minima of 6 bits. It stores the j-th scale at dst(0, j), the j-th minimum at dst(1, j).
func scalesK(t Rows, dst func(which, j int) operand.Mem) {
	head := columns16(t, 0)
	words, low, two := splat(0xffff), splat(0x0f0f0f0f), splat(0x30303030)
	d, dmin := YMM(), YMM()
	VPAND(words, head[0], d)
	VPSRLD(operand.Imm(16), head[0], dmin)
	units := []reg.VecVirtual{d, dmin}
	for _, h := range units {
		VPACKUSDW(h, h, h)
		VPERMQ(operand.Imm(0x08), h, h)
		VCVTPH2PS(h.AsX(), h)
	}
	last := nibbles(head[3], low) // four bits; two more in the top bits of the first bytes
	for i, first := range head[1:3] {
		orBits(first, -2, two, last[i])
		VPAND(all(0x3f3f3f3f), first, first)
		for j := range 8 {
			v, bytes := YMM(), [2]reg.VecVirtual{first, last[i]}[j/4]
			VPSHUFB(lowByte(j%4), bytes, v)
			VCVTDQ2PS(v, v)
			VMULPS(units[i], v, v)
			VMOVUPS(v, dst(i, j))
		}
	}
}

// lowByte returns a shuffle that moves byte i of each dword to its low byte, and clears the others.
func lowByte(i int) operand.Mem {
	return constant(fmt.Sprintf("lowByte%dAVX2", i), func(dword int) uint32 { return 0x80808000 | uint32(4*(dword%4)+i) })
}

func packQ6K() {
	Kernel("packQ6KAVX2", PackSignature, PackAbout)
	kept, tmp := AllocLocal(32*8), AllocLocal(2*lanes)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	SHRQ(operand.Imm(3), blocks)
	t.Steps(blocks, panel, 8*panelSize, 210, func(next *Ahead) {
		scalesQ6K(t, panel, tmp)
		low, two, offset := splat(0x0f0f0f0f), splat(0x30303030), splat(0x20202020)
		for half := range 2 {
			keep(columns32(t, 128+32*half), kept)
			for part := range 2 {
				for k, y := range columns32(t, 64*half+32*part) {
					for i, v := range nibbles(y, low) {
						orKept(kept.Offset(32*k), 4-2*(part+2*i), two, v)
						VPSUBB(offset, v, v)
						VMOVDQU(v, Mem(panel, panelSize*(4*half+part+2*i)+32*k))
					}
					next.Fetch(16*half+8*part+k+1, 32)
				}
			}
		}
	})
}

// scalesQ6K unpacks the 16 signed scale bytes of a Q6_K block and the half float that multiplies them.
func scalesQ6K(t Rows, panel reg.GPVirtual, tmp operand.Mem) {
	t.CopyHalves(208, tmp)
	d, scales := YMM(), columns16(t, 192)
	VCVTPH2PS(tmp, d)
	for i := range 16 {
		v, at := YMM(), panelSize*(i/2)
		VPSLLD(operand.Imm(uint64(24-8*(i%4))), scales[i/4], v)
		VPSRAD(operand.Imm(24), v, v)
		VCVTDQ2PS(v, v)
		VMOVUPS(v, Mem(panel, at+panelScale+32*(i%2)))
		if i%2 == 0 {
			VMOVUPS(d, Mem(panel, at+panelMin))
		}
	}
}
