package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns16 reads 16 bytes at disp of every row: register k holds dword k of the 16 rows.
func columns16(t Rows, disp int) []reg.VecVirtual {
	z := zmms(4)
	for r := range 4 {
		VBROADCASTI32X4(t.At(r, disp), z[r])
		for lane := 1; lane < 4; lane++ {
			VINSERTI32X4(operand.Imm(uint64(lane)), t.At(4*lane+r, disp), z[r], z[r])
		}
	}
	Transpose4(z, ZMM)
	return z
}

// columns32 reads 32 bytes at disp of every row: register k holds dword k of the 16 rows.
func columns32(t Rows, disp int) []reg.VecVirtual {
	z := zmms(8)
	for i, r := range []int{0, 1, 2, 3, 8, 9, 10, 11} {
		VBROADCASTI64X4(t.At(r, disp), z[i])
		VINSERTI64X4(operand.Imm(1), t.At(r+4, disp), z[i], z[i])
	}
	Transpose4(z[:4], ZMM)
	Transpose4(z[4:], ZMM)
	out := zmms(8)
	for k := range 4 {
		VSHUFI64X2(operand.Imm(0x88), z[4+k], z[k], out[k])
		VSHUFI64X2(operand.Imm(0xdd), z[4+k], z[k], out[4+k])
	}
	return out
}

// packs emits the kernels that convert 16 rows of up to 8 blocks of 32 columns to a panel.
func packs() {
	packQ80()
	packQ40()
	packQ4K(false)
	packQ4K(true)
	packQ6K()
}

func packQ80() {
	Kernel("packQ80AVX512", PackSignature, PackAbout)
	scales := AllocLocal(32 * Collected)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	flip := splat(0x80808080)
	_, at := t.CollectScales(blocks, 34, scales)
	t.Steps(blocks, panel, panelSize, 34, func(next *Ahead) {
		for k, z := range columns32(t, 2) {
			VPXORD(flip, z, z)
			VMOVDQU32(z, Mem(panel, 64*k))
			next.Fetch(k+1, 8)
		}
		vector.StoreScale(at, Mem(panel, panelScale))
	})
}

func packQ40() {
	Kernel("packQ40AVX512", PackSignature, PackAbout)
	scales := AllocLocal(32 * Collected)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	low, offset := splat(0x0f0f0f0f), splat(0x78787878) // 128-8
	_, at := t.CollectScales(blocks, 18, scales)
	t.Steps(blocks, panel, panelSize, 18, func(next *Ahead) {
		for k, z := range columns16(t, 2) {
			for i, v := range nibbles(z) {
				VPANDD(low, v, v)
				VPADDB(offset, v, v)
				VMOVDQU32(v, Mem(panel, 64*(k+4*i)))
			}
			next.Fetch(k+1, 4)
		}
		vector.StoreScale(at, Mem(panel, panelScale))
	})
}

// packQ4K emits the kernel for whole blocks of 256 columns, of Q4_K or, with fifth set, of Q5_K, whose values have a
// fifth bit.
func packQ4K(fifth bool) {
	name, values, size := "packQ4KAVX512", 16, 144
	if fifth {
		name, values, size = "packQ5KAVX512", 48, 176
	}
	Kernel(name, PackSignature, PackAbout)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	SHRQ(operand.Imm(3), blocks)
	low, flip, bit := splat(0x0f0f0f0f), splat(0x80808080), splat(0x10101010)
	t.Steps(blocks, panel, 8*panelSize, size, func(next *Ahead) {
		head := headerK(t)
		for j := range 8 {
			VMOVUPS(head.unpack(0, j), Mem(panel, panelSize*j+panelScale))
			VMOVUPS(head.unpack(1, j), Mem(panel, panelSize*j+panelMin))
		}
		var fifths []reg.VecVirtual
		if fifth {
			fifths = columns32(t, 16)
		}
		for j := range 4 {
			for k, z := range columns32(t, values+32*j) {
				for i, v := range nibbles(z) {
					VPTERNLOGD(operand.Imm(0xea), flip, low, v) // v & low | flip
					if fifth {
						orBit(fifths[k], 2*j+i, bit, v)
					}
					VMOVDQU32(v, Mem(panel, panelSize*(2*j+i)+64*k))
				}
				next.Fetch(8*j+k+1, 32)
			}
		}
	})
}

// nibbles returns z and z shifted right: their low four bits of each byte are the halves of the bytes of z.
func nibbles(z reg.VecVirtual) []reg.VecVirtual {
	high := ZMM()
	VPSRLW(operand.Imm(4), z, high)
	return []reg.VecVirtual{z, high}
}

// orBit adds bit n of each byte of z, moved to bit 4, to v.
func orBit(z reg.VecVirtual, n int, bit, v reg.VecVirtual) {
	b := ZMM()
	if n <= 4 {
		VPSLLW(operand.Imm(uint64(4-n)), z, b)
	} else {
		VPSRLW(operand.Imm(uint64(n-4)), z, b)
	}
	VPTERNLOGD(operand.Imm(0xf8), bit, b, v) // v | b & bit
}

// header is the header of Q4_K and Q5_K blocks of 16 rows: dword 0 of a row holds two half floats, which multiply the
// scales and the minima. Dwords 1 to 3 hold eight scales and eight minima of 6 bits.
type header struct {
	units, firsts [2]reg.VecVirtual
	rest          reg.VecVirtual
}

func headerK(t Rows) header {
	head := columns16(t, 0)
	d, dmin := ZMM(), ZMM()
	VPMOVDW(head[0], d.AsY())
	VCVTPH2PS(d.AsY(), d)
	VPSRLD(operand.Imm(16), head[0], head[0])
	VPMOVDW(head[0], dmin.AsY())
	VCVTPH2PS(dmin.AsY(), dmin)
	return header{[2]reg.VecVirtual{d, dmin}, [2]reg.VecVirtual{head[1], head[2]}, head[3]}
}

// unpack returns the j-th scale, or minimum if which is 1.
func (h header) unpack(which, j int) reg.VecVirtual {
	v := ZMM()
	if j < 4 {
		VPSRLD(operand.Imm(uint64(8*j)), h.firsts[which], v)
		VPANDD_BCST(dword(63), v, v)
	} else { // four bits in dword 3, two more in the top bits of the first bytes
		top := ZMM()
		VPSRLD(operand.Imm(uint64(8*(j-4)+4*which)), h.rest, v)
		VPANDD_BCST(dword(15), v, v)
		VPSRLD(operand.Imm(uint64(8*(j-4)+2)), h.firsts[which], top)
		VPANDD_BCST(dword(0x30), top, top)
		VPORD(top, v, v)
	}
	VCVTDQ2PS(v, v)
	VMULPS(h.units[which], v, v)
	return v
}

func packQ6K() {
	Kernel("packQ6KAVX512", PackSignature, PackAbout)
	tmp := AllocLocal(32)
	panel, blocks, t := Arg("panel"), Arg("blocks"), RowsAt("base", "stride", lanes, 0)
	SHRQ(operand.Imm(3), blocks)
	low, offset := splat(0x0f0f0f0f), splat(0x60606060) // 128-32
	t.Steps(blocks, panel, 8*panelSize, 210, func(next *Ahead) {
		scalesQ6K(t, panel, tmp)
		for half := range 2 {
			top := columns32(t, 128+32*half)
			for part := range 2 {
				for k, z := range columns32(t, 64*half+32*part) {
					for i, v := range nibbles(z) {
						VPANDD(low, v, v)
						orTwoBits(top[k], part+2*i, dword(0x30303030), v)
						VPADDB(offset, v, v)
						VMOVDQU32(v, Mem(panel, panelSize*(4*half+part+2*i)+64*k))
					}
					next.Fetch(16*half+8*part+k+1, 32)
				}
			}
		}
	})
}

// orTwoBits adds the n-th pair of bits of each byte of z, moved to bits 4 and 5, which two selects, to v.
func orTwoBits(z reg.VecVirtual, n int, two operand.Mem, v reg.VecVirtual) {
	b := ZMM()
	if n <= 2 {
		VPSLLW(operand.Imm(uint64(4-2*n)), z, b)
	} else {
		VPSRLW(operand.Imm(2), z, b)
	}
	VPTERNLOGD_BCST(operand.Imm(0xf8), two, b, v) // v | b & two
}

// scalesQ6K unpacks the 16 signed scale bytes of a Q6_K block, and the half float that multiplies all of them.
func scalesQ6K(t Rows, panel reg.GPVirtual, tmp operand.Mem) {
	t.CopyHalves(208, tmp)
	d, scales := ZMM(), columns16(t, 192)
	VCVTPH2PS(tmp, d)
	for i := range 16 {
		v := ZMM()
		VPSLLD(operand.Imm(uint64(24-8*(i%4))), scales[i/4], v)
		VPSRAD(operand.Imm(24), v, v)
		VCVTDQ2PS(v, v)
		VMOVUPS(v, Mem(panel, panelSize*(i/2)+panelScale+64*(i%2)))
	}
	for b := range 8 {
		VMOVUPS(d, Mem(panel, panelSize*b+panelMin))
	}
}
