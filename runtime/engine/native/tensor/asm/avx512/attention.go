package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowCounts are the numbers of query rows with specialised code.
var rowCounts = []int{8, 4, 3, 2, 1}

func attention() {
	Kernel("attnScoresAVX512", ScoresSignature, fmt.Sprintf("computes %v rows; stride is in values.", rowCounts))
	PerRows(rowCounts, scores)
	vector.Mix(rowCounts, 4)
}

// scores emits the products of query rows with tiles of 16 keys, several tiles at a time.
func scores(rows int) {
	tiles := min(16/rows, 4)
	q, keys, left, at := RowsAt("q", "dim", rows, 2), Arg("keys"), Arg("positions"), GP64()
	XORQ(at, at) // offset in each row of scores, in bytes
	many, one, done := fmt.Sprintf("many%d", rows), fmt.Sprintf("one%d", rows), fmt.Sprintf("done%d", rows)
	Label(many)
	CMPQ(left, operand.Imm(uint64(16*tiles)))
	JLT(operand.LabelRef(one))
	scoreTiles(rows, tiles, q, keys, at)
	SUBQ(operand.Imm(uint64(16*tiles)), left)
	JMP(operand.LabelRef(many))
	Label(one)
	TESTQ(left, left)
	JZ(operand.LabelRef(done))
	scoreTiles(rows, 1, q, keys, at)
	SUBQ(operand.Imm(16), left)
	JMP(operand.LabelRef(one))
	Label(done)
}

// scoreTiles emits the products of query rows with some tiles, one dimension after another, and advances keys and at.
func scoreTiles(rows, tiles int, q Rows, keys, at reg.GPVirtual) {
	sums := zmms(rows * tiles)
	Zero(sums...)
	dims, tile, tile3 := Arg("dim"), Arg("dim"), GP64()
	SHLQ(operand.Imm(5), tile)
	LEAQ(operand.Mem{Base: tile, Index: tile, Scale: 2}, tile3)
	loop := fmt.Sprintf("dims%dx%d", rows, tiles)
	Label(loop)
	k, x := zmms(tiles), ZMM()
	for i := range tiles {
		m := operand.Mem{Base: keys}
		switch i {
		case 1, 2:
			m.Index, m.Scale = tile, uint8(i)
		case 3:
			m.Index, m.Scale = tile3, 1
		}
		VCVTPH2PS(m, k[i])
	}
	for r := range rows {
		VBROADCASTSS(q.At(r, 0), x)
		for i := range tiles {
			VFMADD231PS(k[i], x, sums[r*tiles+i])
		}
	}
	ADDQ(operand.Imm(32), keys)
	q.Advance(operand.Imm(4))
	DECQ(dims)
	JNZ(operand.LabelRef(loop))
	out := RowsAt("scores", "stride", rows, 2)
	out.Advance(at)
	for r := range rows {
		for i := range tiles {
			VMOVUPS(sums[r*tiles+i], out.At(r, 64*i))
		}
	}
	ADDQ(Imm(64*tiles), at)
	if tiles > 1 { // keys points to the end of the first tile
		for range tiles - 1 {
			ADDQ(tile, keys)
		}
	}
	back := Arg("dim")
	SHLQ(operand.Imm(2), back)
	NEGQ(back)
	q.Advance(back)
}
