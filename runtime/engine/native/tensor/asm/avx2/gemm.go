package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemms emits the products of a panel, 8 rows by blocks of 32 columns, with n vectors.
func gemms() {
	for _, f := range Forms {
		Kernel(f.Name+"AVX2", GemmSignature, GemmAbout)
		in, out, n := Arg("in"), Arg("out"), Arg("n")
		Label("four")
		CMPQ(n, operand.Imm(4))
		JLT(operand.LabelRef("one"))
		vectorsOf(f, 4, in, out)
		SUBQ(operand.Imm(4), n)
		JMP(operand.LabelRef("four"))
		Label("one")
		TESTQ(n, n)
		JZ(operand.LabelRef("done"))
		vectorsOf(f, 1, in, out)
		DECQ(n)
		JMP(operand.LabelRef("one"))
		Label("done")
		VZEROUPPER()
		RET()
	}
}

// wanted loads the mask of the rows whose results are stored.
func wanted() reg.VecVirtual {
	bits := GP32()
	Load(Param("mask"), bits.As16())
	return chosenLanes(bits)
}

// vectorsOf emits the product of the panel with the next v vectors, and advances in and out.
func vectorsOf(f Form, v int, in, out reg.GPVirtual) {
	acts := Pointers(in, "act", "actStride", v)
	sums := ymms(v)
	Zero(sums...)
	add, first := GP8(), fmt.Sprintf("first%d", v)
	Load(Param("add"), add)
	TESTB(add, add)
	JZ(operand.LabelRef(first))
	mask := wanted()
	Results(out, v, func(i int, m operand.Mem) { VMASKMOVPS(m, mask, sums[i]) })
	Label(first)
	panel, blocks, at, ones := Arg("panel"), Arg("blocks"), GP64(), splat(0x00010001)
	XORQ(at, at)
	loop := fmt.Sprintf("blocks%d", v)
	Label(loop)
	blockOf(f, panel, acts, at, ones, sums)
	ADDQ(Imm(panelSize), panel)
	ADDQ(Imm(ActSize), at)
	DECQ(blocks)
	JNZ(operand.LabelRef(loop))
	mask = wanted()
	Results(out, v, func(i int, m operand.Mem) { VMASKMOVPS(sums[i], mask, m) })
	ADDQ(Imm(4*v), in)
	ADDQ(Imm(4*v), out)
}

// blockOf adds the products of one block to sums.
func blockOf(f Form, panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, ones reg.VecVirtual, sums []reg.VecVirtual) {
	if f.Halves {
		halfParts(panel, acts, at, ones, sums)
	} else {
		ints := part(panel, acts, at, ones, 0, 8)
		for _, y := range ints {
			VCVTDQ2PS(y, y)
		}
		addScaled(panel, acts, at, sums, ints, panelScale)
	}
	if f.HasMin {
		minimum, sum := YMM(), YMM()
		VMOVUPS(Mem(panel, panelMin), minimum)
		for i, a := range acts {
			VBROADCASTSS(Indexed(a, at, ActSum), sum)
			VFNMADD231PS(sum, minimum, sums[i])
		}
	}
}

// halfParts multiplies the halves of a block by their scales, which are integers: the sum is exact, below 1<<24, until it
// is multiplied by the factor of both.
func halfParts(panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, ones reg.VecVirtual, sums []reg.VecVirtual) {
	first := part(panel, acts, at, ones, 0, 4)
	for _, y := range first {
		VCVTDQ2PS(y, y)
		VMULPS(Mem(panel, panelScale), y, y)
	}
	for i, y := range part(panel, acts, at, ones, 4, 8) {
		VCVTDQ2PS(y, y)
		VFMADD231PS(Mem(panel, panelScale1), y, first[i])
	}
	addScaled(panel, acts, at, sums, first, panelMin)
}

// part multiplies the dwords from..to of a block, four columns of 8 rows each. Bytes are multiplied as |w| times x with
// the sign of w: two such products fit into 16 bits even for w = -128.
func part(panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, ones reg.VecVirtual, from, to int) []reg.VecVirtual {
	ints, w, size, x := ymms(len(acts)), YMM(), YMM(), YMM()
	Zero(ints...)
	for k := from; k < to; k++ {
		VMOVDQU(Mem(panel, 32*k), w)
		VPABSB(w, size)
		for i, a := range acts {
			VPBROADCASTD(Indexed(a, at, 4*k), x)
			VPSIGNB(w, x, x)
			VPMADDUBSW(x, size, x)
			VPMADDWD(ones, x, x)
			VPADDD(x, ints[i], ints[i])
		}
	}
	return ints
}

// addScaled adds products, times the scales of the weights and of the activations, to sums.
func addScaled(panel reg.GPVirtual, acts []reg.Register, at reg.GPVirtual, sums, products []reg.VecVirtual, scaleAt int) {
	scale, s := YMM(), YMM()
	VMOVUPS(Mem(panel, scaleAt), scale)
	for i, a := range acts {
		VBROADCASTSS(Indexed(a, at, ActScale), s)
		VMULPS(scale, s, s)
		VFMADD231PS(s, products[i], sums[i])
	}
}
