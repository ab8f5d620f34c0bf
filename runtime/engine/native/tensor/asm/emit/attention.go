package emit

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Mix emits the kernel that sums the weighted values of all positions, with code for each of some numbers of rows. It
// processes several registers of columns at a time, the most for up to few rows.
func (v Vector) Mix(rowCounts []int, few int) {
	Kernel("attnMix"+v.Suffix, MixSignature, fmt.Sprintf("computes %v rows of dim values, a multiple of %d; stride is in values.", rowCounts, v.Lanes))
	PerRows(rowCounts, func(rows int) {
		if rows <= few {
			v.mix(rows, 4, 2, 1)
		} else {
			v.mix(rows, 2, 1)
		}
	})
}

// mix emits the sums of some rows, for as many registers of columns at a time as each of widths.
func (v Vector) mix(rows int, widths ...int) {
	at, left := GP64(), Arg("dim")
	XORQ(at, at) // offset in a value, in bytes
	for i, columns := range widths {
		loop, end := fmt.Sprintf("columns%dx%d", rows, columns), fmt.Sprintf("end%d", rows)
		if i+1 < len(widths) {
			end = fmt.Sprintf("columns%dx%d", rows, widths[i+1])
		}
		Label(loop)
		CMPQ(left, operand.Imm(uint64(v.Lanes*columns)))
		JLT(operand.LabelRef(end))
		v.mixColumns(rows, columns, at)
		SUBQ(operand.Imm(uint64(v.Lanes*columns)), left)
		JMP(operand.LabelRef(loop))
	}
	Label(fmt.Sprintf("end%d", rows))
}

func (v Vector) mixColumns(rows, columns int, at reg.GPVirtual) {
	sums := Registers(rows*columns, v.New)
	Zero(sums...)
	w, values, step, n := RowsAt("weights", "stride", rows, 2), Arg("values"), Arg("dim"), Arg("n")
	ADDQ(at, values)
	SHLQ(operand.Imm(1), step)
	loop := fmt.Sprintf("positions%dx%d", rows, columns)
	Label(loop)
	vals, x := Registers(columns, v.New), v.New()
	for i := range columns {
		VCVTPH2PS(Mem(values, 2*v.Lanes*i), vals[i])
	}
	for r := range rows {
		VBROADCASTSS(w.At(r, 0), x)
		for i := range columns {
			VFMADD231PS(vals[i], x, sums[r*columns+i])
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
			VMOVUPS(sums[r*columns+i], out.At(r, 4*v.Lanes*i))
		}
	}
	ADDQ(Imm(2*v.Lanes*columns), at)
}
