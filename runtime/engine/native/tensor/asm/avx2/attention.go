package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// rowCounts are the numbers of query rows with specialised code.
var rowCounts = []int{4, 3, 2, 1}

func attention() {
	Kernel("attnScoresAVX2", ScoresSignature, fmt.Sprintf("computes %v rows; stride is in values.", rowCounts))
	PerRows(rowCounts, scores)
	vector.Mix(rowCounts, 2)
}

// scores emits the products of query rows with keys, one tile of 16 positions after another.
func scores(rows int) {
	q, keys, left := RowsAt("q", "dim", rows, 2), Arg("keys"), Arg("positions")
	out := RowsAt("scores", "stride", rows, 2)
	tile := fmt.Sprintf("tile%d", rows)
	Label(tile)
	sums, dims := ymms(2*rows), Arg("dim")
	Zero(sums...)
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
