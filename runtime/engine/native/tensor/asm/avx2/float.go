package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// floats emits the products of up to four rows of floating-point weights, with a multiple of 8 columns, with n vectors.
// Lane l of an accumulator sums the columns l, l+8, … for any number of vectors.
func floats() {
	for _, s := range Sources {
		Kernel("gemm"+s.Name+"AVX2", FloatsSignature, FloatsAbout)
		p, keep := FourRows(), firstLanes(Arg("rows"))
		in, out, n := Arg("in"), Arg("out"), Arg("n")
		Label("two")
		CMPQ(n, operand.Imm(2))
		JLT(operand.LabelRef("one"))
		floatVectors(s, 2, p, keep, in, out)
		SUBQ(operand.Imm(2), n)
		JMP(operand.LabelRef("two"))
		Label("one")
		TESTQ(n, n)
		JZ(operand.LabelRef("done"))
		floatVectors(s, 1, p, keep, in, out)
		Label("done")
		VZEROUPPER()
		RET()
	}
}

// floatVectors emits the product of four rows with the next v vectors. With one vector, reading the weights takes the time:
// rows are read two by two, so that one is added while the other waits for its last sum, and ahead of their use.
func floatVectors(s Source, v int, rows [4]reg.GPVirtual, keep reg.VecVirtual, in, out reg.GPVirtual) {
	xs := Pointers(in, "x", "xStride", v)
	sums := ymms(4 * v)
	Zero(sums...)
	if v > 1 {
		next := AheadOf(rows[0], Arg("stride"), len(rows), lanes*s.Size)
		floatColumns(s, fmt.Sprint(v), rows[:], xs, sums, 1, func(reg.GPVirtual) {
			next.Fetch(1, 1)
			next.Advance()
		})
	} else {
		for r := 0; r < len(rows); r += 2 {
			pair := rows[r : r+2]
			next := nextRows(pair)
			floatColumns(s, fmt.Sprint(v, "rows", r), pair, xs, sums[r:r+2], CacheLine/(lanes*s.Size), func(at reg.GPVirtual) {
				for _, p := range next {
					PREFETCHT1(operand.Mem{Base: p, Index: at, Scale: uint8(s.Size)})
				}
			})
		}
	}
	Results(out, v, func(i int, m operand.Mem) { VMASKMOVPS(fourSums(sums[4*i:4*i+4]).AsX(), keep.AsX(), m) })
	ADDQ(Imm(4*v), in)
	ADDQ(Imm(4*v), out)
}

// nextRows returns as many rows as given that follow them in memory.
func nextRows(rows []reg.GPVirtual) []reg.GPVirtual {
	next, span := make([]reg.GPVirtual, len(rows)), Arg("stride")
	IMUL3Q(operand.I8(len(rows)), span, span)
	for i, p := range rows {
		next[i] = GP64()
		LEAQ(Indexed(p, span, 0), next[i])
	}
	return next
}

// floatColumns adds the products of all columns of some rows to sums, one for each vector and row. fetch emits code that
// runs once for the given number of steps.
func floatColumns(s Source, name string, rows []reg.GPVirtual, xs []reg.Register, sums []reg.VecVirtual, steps int, fetch func(at reg.GPVirtual)) {
	Columns(name, lanes, steps, fetch, func(at reg.GPVirtual) { floatStep(s, rows, xs, at, sums) })
}

// floatStep adds the products of 8 columns.
func floatStep(s Source, rows []reg.GPVirtual, xs []reg.Register, at reg.GPVirtual, sums []reg.VecVirtual) {
	vals := ymms(len(xs))
	for i, x := range xs {
		VMOVUPS(operand.Mem{Base: x, Index: at, Scale: 4}, vals[i])
	}
	for r, p := range rows {
		w := YMM()
		s.Load(operand.Mem{Base: p, Index: at, Scale: uint8(s.Size)}, w)
		for i := range xs {
			VFMADD231PS(vals[i], w, sums[len(rows)*i+r])
		}
	}
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
