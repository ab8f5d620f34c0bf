package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemms emits the products of a panel, 16 rows by blocks of 32 columns, with n vectors.
func gemms() {
	for _, f := range Forms {
		Kernel(f.Name+"AVX512", GemmSignature, GemmAbout)
		in, out, n := Arg("in"), Arg("out"), Arg("n")
		mask16, mask := GP32(), K()
		Load(Param("mask"), mask16.As16())
		KMOVW(mask16, mask)
		Label("eight")
		CMPQ(n, operand.Imm(8))
		JLT(operand.LabelRef("four"))
		vectorsOf(f, 8, in, out, mask)
		SUBQ(operand.Imm(8), n)
		JMP(operand.LabelRef("eight"))
		for _, part := range []struct {
			v           int
			label, next string
		}{{4, "four", "two"}, {2, "two", "one"}, {1, "one", "done"}} {
			Label(part.label)
			TESTQ(Imm(part.v), n)
			JZ(operand.LabelRef(part.next))
			vectorsOf(f, part.v, in, out, mask)
		}
		Label("done")
		VZEROUPPER()
		RET()
	}
}

// vectorsOf emits the product of the panel with the next v vectors, and advances in and out.
func vectorsOf(f Form, v int, in, out reg.GPVirtual, mask reg.OpmaskVirtual) {
	acts := Pointers(in, "act", "actStride", v)
	sums := zmms(v)
	Zero(sums...)
	add, first := GP8(), fmt.Sprintf("first%d", v)
	Load(Param("add"), add)
	TESTB(add, add)
	JZ(operand.LabelRef(first))
	Results(out, v, func(i int, m operand.Mem) { VMOVUPS_Z(m, mask, sums[i]) })
	Label(first)
	panel, blocks, at := Arg("panel"), Arg("blocks"), GP64()
	XORQ(at, at)
	loop := fmt.Sprintf("blocks%d", v)
	Label(loop)
	blockOf(f, panel, acts, at, sums)
	ADDQ(Imm(panelSize), panel)
	ADDQ(Imm(ActSize), at)
	DECQ(blocks)
	JNZ(operand.LabelRef(loop))
	Results(out, v, func(i int, m operand.Mem) { VMOVUPS(sums[i], mask, m) })
	ADDQ(Imm(4*v), in)
	ADDQ(Imm(4*v), out)
}

// blockOf adds the products of one block to sums.
func blockOf(f Form, panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, sums []reg.VecVirtual) {
	if f.Halves {
		halfParts(panel, acts, at, sums)
	} else {
		ints := partOf(panel, acts, at, 0, 8, ActOff)
		for _, z := range ints {
			VCVTDQ2PS(z, z)
		}
		addScaled(panel, acts, at, sums, ints, panelScale)
	}
	if f.HasMin {
		minimum := ZMM()
		VMOVUPS(Mem(panel, panelMin), minimum)
		for i, a := range acts {
			VFNMADD231PS_BCST(Indexed(a, at, ActSum), minimum, sums[i])
		}
	}
}

// halfParts multiplies the halves of a block by their scales, which are integers: the sum is exact, below 1<<24, until it
// is multiplied by the factor of both.
func halfParts(panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, sums []reg.VecVirtual) {
	first, scale := partOf(panel, acts, at, 0, 4, ActOff0), ZMM()
	VMOVUPS(Mem(panel, panelScale), scale)
	for _, z := range first {
		VCVTDQ2PS(z, z)
		VMULPS(scale, z, z)
	}
	second := partOf(panel, acts, at, 4, 8, ActOff1)
	VMOVUPS(Mem(panel, panelScale1), scale)
	for i, z := range second {
		VCVTDQ2PS(z, z)
		VFMADD231PS(scale, z, first[i])
	}
	addScaled(panel, acts, at, sums, first, panelMin)
}

// partOf multiplies the dwords from..to of a block, four columns of 16 rows each. The integer sums start at the activations'
// -128·Σq because the panel holds weights+128.
func partOf(panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, from, to, off int) []reg.VecVirtual {
	ints, w := zmms(len(acts)), ZMM()
	for i, a := range acts {
		VPBROADCASTD(Indexed(a, at, off), ints[i])
	}
	for k := from; k < to; k++ {
		VMOVDQU32(Mem(panel, 64*k), w)
		for i, a := range acts {
			dotBytes(Indexed(a, at, 4*k), w, ints[i], "BCST")
		}
	}
	return ints
}

// addScaled adds products, times the scales of the weights and of the activations, to sums.
func addScaled(panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, sums, products []reg.VecVirtual, scaleAt int) {
	scale, s := ZMM(), ZMM()
	VMOVUPS(Mem(panel, scaleAt), scale)
	for i, a := range acts {
		VMULPS_BCST(Indexed(a, at, ActScale), scale, s)
		VFMADD231PS(s, products[i], sums[i])
	}
}
