package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// source is a type of floating-point weights, with the code that converts 8 of them to float32.
type source struct {
	name string
	size int
	load func(m operand.Mem, y reg.VecVirtual)
}

var sources = []source{
	{"F32", 4, func(m operand.Mem, y reg.VecVirtual) { VMOVUPS(m, y) }},
	{"F16", 2, func(m operand.Mem, y reg.VecVirtual) { VCVTPH2PS(m, y) }},
	{"BF16", 2, func(m operand.Mem, y reg.VecVirtual) {
		VPMOVZXWD(m, y)
		VPSLLD(operand.Imm(16), y, y)
	}},
}

// floats emits the products of up to four rows of floating-point weights, with a multiple of 8 columns, with n vectors.
// Lane l of an accumulator sums the columns l, l+8, … for any number of vectors.
func floats() {
	for _, s := range sources {
		TEXT("gemm"+s.name+"AVX2", NOSPLIT, "func(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)")
		p, keep := FourRows(), firstLanes(Arg("rows"))
		in, out, n := Arg("in"), Arg("out"), Arg("n")
		Label("two")
		CMPQ(n, operand.Imm(2))
		JLT(operand.LabelRef("one"))
		s.vectors(2, p, keep, in, out)
		SUBQ(operand.Imm(2), n)
		JMP(operand.LabelRef("two"))
		Label("one")
		TESTQ(n, n)
		JZ(operand.LabelRef("done"))
		s.vectors(1, p, keep, in, out)
		Label("done")
		VZEROUPPER()
		RET()
	}
}

// vectors emits the product of four rows with the next v vectors.
func (s source) vectors(v int, rows [4]reg.GPVirtual, keep reg.VecVirtual, in, out reg.GPVirtual) {
	xs := Pointers(in, "x", "xStride", v)
	sums := ymms(4 * v)
	zero(sums...)
	at, cols, next := GP64(), Arg("cols"), AheadOf(rows[0], Arg("stride"), len(rows), lanes*s.size)
	XORQ(at, at)
	loop := fmt.Sprintf("columns%d", v)
	Label(loop)
	vals := ymms(v)
	for i, x := range xs {
		VMOVUPS(operand.Mem{Base: x, Index: at, Scale: 4}, vals[i])
	}
	for r, p := range rows {
		w := YMM()
		s.load(operand.Mem{Base: p, Index: at, Scale: uint8(s.size)}, w)
		for i := range xs {
			VFMADD231PS(vals[i], w, sums[4*i+r])
		}
	}
	next.Fetch(1, 1)
	next.Advance()
	ADDQ(operand.Imm(lanes), at)
	CMPQ(at, cols)
	JLT(operand.LabelRef(loop))
	Results(out, v, func(i int, m operand.Mem) { VMASKMOVPS(fourSums(sums[4*i:4*i+4]).AsX(), keep.AsX(), m) })
	ADDQ(Imm(4*v), in)
	ADDQ(Imm(4*v), out)
}

// fourSums reduces four registers to their sums, in the first four lanes of one.
func fourSums(y []reg.VecVirtual) reg.VecVirtual {
	half, sum := XMM(), XMM()
	VHADDPS(y[1], y[0], y[0])
	VHADDPS(y[3], y[2], y[2])
	VHADDPS(y[2], y[0], y[0])
	VEXTRACTF128(operand.Imm(1), y[0], half)
	VADDPS(y[0].AsX(), half, sum)
	return sum
}
