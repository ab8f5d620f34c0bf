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
	TEXT("attnScoresAVX512", NOSPLIT, "func(scores *float32, stride int, q *float32, rows int, keys *uint16, dim, positions int)")
	PerRows(rowCounts, scores)
	TEXT("attnMixAVX512", NOSPLIT, "func(out, weights *float32, stride, rows int, values *uint16, dim, n int)")
	PerRows(rowCounts, mix)
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
	zero(sums)
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

// mix emits the weighted sums of values over positions, for several columns at a time.
func mix(rows int) {
	at, left := GP64(), Arg("dim")
	XORQ(at, at) // offset in a value, in bytes
	widths := []int{2, 1}
	if rows <= 4 {
		widths = []int{4, 2, 1}
	}
	for i, columns := range widths {
		loop := fmt.Sprintf("columns%dx%d", rows, columns)
		end := fmt.Sprintf("end%d", rows)
		if i+1 < len(widths) {
			end = fmt.Sprintf("columns%dx%d", rows, widths[i+1])
		}
		Label(loop)
		CMPQ(left, operand.Imm(uint64(16*columns)))
		JLT(operand.LabelRef(end))
		mixColumns(rows, columns, at)
		SUBQ(operand.Imm(uint64(16*columns)), left)
		JMP(operand.LabelRef(loop))
	}
	Label(fmt.Sprintf("end%d", rows))
}

func mixColumns(rows, columns int, at reg.GPVirtual) {
	sums := zmms(rows * columns)
	zero(sums)
	w, values, step, n := RowsAt("weights", "stride", rows, 2), Arg("values"), Arg("dim"), Arg("n")
	ADDQ(at, values)
	SHLQ(operand.Imm(1), step)
	loop := fmt.Sprintf("positions%dx%d", rows, columns)
	Label(loop)
	v, x := zmms(columns), ZMM()
	for i := range columns {
		VCVTPH2PS(Mem(values, 32*i), v[i])
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
			VMOVUPS(sums[r*columns+i], out.At(r, 64*i))
		}
	}
	ADDQ(Imm(32*columns), at)
}
