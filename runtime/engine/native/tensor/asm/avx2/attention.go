package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowCounts are the numbers of query rows with specialised code.
var rowCounts = []int{4, 3, 2, 1}

func attention() {
	TEXT("attnScoresAVX2", NOSPLIT, "func(scores *float32, stride int, q *float32, rows int, keys *uint16, dim, positions int)")
	PerRows(rowCounts, scores)
	TEXT("attnMixAVX2", NOSPLIT, "func(out, weights *float32, stride, rows int, values *uint16, dim, n int)")
	PerRows(rowCounts, mix)
}

// scores emits the products of query rows with keys, one tile of 16 positions after another.
func scores(rows int) {
	q, keys, left := RowsAt("q", "dim", rows, 2), Arg("keys"), Arg("positions")
	out := RowsAt("scores", "stride", rows, 2)
	tile := fmt.Sprintf("tile%d", rows)
	Label(tile)
	sums, dims := ymms(2*rows), Arg("dim")
	zero(sums...)
	loop := fmt.Sprintf("dims%d", rows)
	Label(loop)
	k, x := ymms(2), YMM()
	VCVTPH2PS(Mem(keys, 0), k[0])
	VCVTPH2PS(Mem(keys, 16), k[1])
	for r := range rows {
		VBROADCASTSS(q.At(r, 0), x)
		VFMADD231PS(k[0], x, sums[2*r])
		VFMADD231PS(k[1], x, sums[2*r+1])
	}
	ADDQ(operand.Imm(32), keys)
	q.Advance(operand.Imm(4))
	DECQ(dims)
	JNZ(operand.LabelRef(loop))
	for r := range rows {
		VMOVUPS(sums[2*r], out.At(r, 0))
		VMOVUPS(sums[2*r+1], out.At(r, 32))
	}
	out.Advance(operand.Imm(64))
	back := Arg("dim")
	SHLQ(operand.Imm(2), back)
	NEGQ(back)
	q.Advance(back)
	SUBQ(operand.Imm(16), left)
	JNZ(operand.LabelRef(tile))
}

// mix emits the weighted sums of values over positions, for several columns at a time.
func mix(rows int) {
	at, left := GP64(), Arg("dim")
	XORQ(at, at) // offset in a value, in bytes
	widths := []int{2, 1}
	if rows <= 2 {
		widths = []int{4, 2, 1}
	}
	for i, columns := range widths {
		loop, end := fmt.Sprintf("columns%dx%d", rows, columns), fmt.Sprintf("end%d", rows)
		if i+1 < len(widths) {
			end = fmt.Sprintf("columns%dx%d", rows, widths[i+1])
		}
		Label(loop)
		CMPQ(left, operand.Imm(uint64(lanes*columns)))
		JLT(operand.LabelRef(end))
		mixColumns(rows, columns, at)
		SUBQ(operand.Imm(uint64(lanes*columns)), left)
		JMP(operand.LabelRef(loop))
	}
	Label(fmt.Sprintf("end%d", rows))
}

func mixColumns(rows, columns int, at reg.GPVirtual) {
	sums := ymms(rows * columns)
	zero(sums...)
	w, values, step, n := RowsAt("weights", "stride", rows, 2), Arg("values"), Arg("dim"), Arg("n")
	ADDQ(at, values)
	SHLQ(operand.Imm(1), step)
	loop := fmt.Sprintf("positions%dx%d", rows, columns)
	Label(loop)
	v, x := ymms(columns), YMM()
	for i := range columns {
		VCVTPH2PS(Mem(values, 2*lanes*i), v[i])
	}
	for r := range rows {
		VBROADCASTSS(w.At(r, 0), x)
		for i := range columns {
			VFMADD231PS(v[i], x, sums[r*columns+i])
		}
	}
	ADDQ(step, values)
	w.Advance(operand.Imm(4))
	DECQ(n)
	JNZ(operand.LabelRef(loop))
	out, at4 := RowsAt("out", "dim", rows, 2), GP64()
	LEAQ(operand.Mem{Base: at, Index: at, Scale: 1}, at4)
	out.Advance(at4)
	for r := range rows {
		for i := range columns {
			VMOVUPS(sums[r*columns+i], out.At(r, 4*lanes*i))
		}
	}
	ADDQ(Imm(2*lanes*columns), at)
}
