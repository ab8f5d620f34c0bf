package emit

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rows addresses rows that are stride bytes apart.
type Rows struct {
	Stride, stride3 reg.GPVirtual
	base            []reg.GPVirtual // rows 0, 4, 8, …
	count           int
}

// RowsAt addresses count rows from the argument base on. The argument stride is in units of 1<<shift bytes.
func RowsAt(base, stride string, count, shift int) Rows {
	t := Rows{Stride: Arg(stride), count: count}
	if shift > 0 {
		SHLQ(operand.Imm(uint64(shift)), t.Stride)
	}
	if count > 3 {
		t.stride3 = GP64()
		LEAQ(operand.Mem{Base: t.Stride, Index: t.Stride, Scale: 2}, t.stride3)
	}
	t.base = append(t.base, Arg(base))
	for i := 4; i < count; i += 4 {
		next := GP64()
		LEAQ(operand.Mem{Base: t.base[i/4-1], Index: t.Stride, Scale: 4}, next)
		t.base = append(t.base, next)
	}
	return t
}

// At returns the address of byte disp of row r.
func (t Rows) At(r, disp int) operand.Mem {
	m := operand.Mem{Base: t.base[r/4], Disp: disp}
	switch r % 4 {
	case 1, 2:
		m.Index, m.Scale = t.Stride, uint8(r%4)
	case 3:
		m.Index, m.Scale = t.stride3, 1
	}
	return m
}

// Gathered returns the addresses of the first bytes of the rows at the given offsets from row 0.
func (t Rows) Gathered(offsets reg.VecVirtual) operand.Mem {
	return operand.Mem{Base: t.base[0], Index: offsets, Scale: 1}
}

// Advance advances every row by n bytes.
func (t Rows) Advance(n operand.Op) {
	for _, b := range t.base {
		ADDQ(n, b)
	}
}

// CopyHalves copies the two bytes at disp of every row to consecutive places from dst on.
func (t Rows) CopyHalves(disp int, dst operand.Mem) {
	h := GP32()
	for r := range t.count {
		MOVWLZX(t.At(r, disp), h)
		MOVW(h.As16(), dst.Offset(2*r))
	}
}

// Collected is the number of blocks whose scales are collected at a time.
const Collected = 8

// CollectScales copies the half floats at the start of the next blocks of size bytes, at most Collected, to the memory
// at scales, block after block. It returns their number and address. They are copied ahead of their use because a wide
// load must wait until the narrow stores before it have left the store buffer.
func (t Rows) CollectScales(left reg.GPVirtual, size int, scales operand.Mem) (n, at reg.GPVirtual) {
	n, at = GP64(), GP64()
	most, row, back := GP64(), GP64(), GP64()
	MOVQ(left, n)
	MOVQ(operand.I32(Collected), most)
	CMPQ(n, most)
	CMOVQGT(most, n)
	LEAQ(scales, at)
	MOVQ(n, row)
	Label("scales")
	t.CopyHalves(0, Mem(at, 0))
	t.Advance(operand.Imm(uint64(size)))
	ADDQ(operand.Imm(uint64(2*t.count)), at)
	DECQ(row)
	JNZ(operand.LabelRef("scales"))
	IMUL3Q(operand.I8(-size), n, back)
	t.Advance(back)
	LEAQ(scales, at)
	return n, at
}

// StoreScale stores the half floats of rows that were collected at the address at as float32 values, and advances at.
func (v Vector) StoreScale(at reg.GPVirtual, to operand.Mem) {
	scale := v.New()
	VCVTPH2PS(Mem(at, 0), scale)
	VMOVUPS(scale, to)
	ADDQ(operand.Imm(uint64(2*v.Lanes)), at)
}

// PerRows emits code for each of some numbers of rows, and the selection among them by the argument rows.
func PerRows(counts []int, do func(rows int)) {
	rows := Arg("rows")
	for _, n := range counts {
		CMPQ(rows, operand.Imm(uint64(n)))
		JEQ(operand.LabelRef(fmt.Sprintf("rows%d", n)))
	}
	RET()
	for _, n := range counts {
		Label(fmt.Sprintf("rows%d", n))
		do(n)
		VZEROUPPER()
		RET()
	}
}

// Steps repeats do n times, and returns. After each, it advances the panel by panelStep, each row by rowStep bytes, and
// what to prefetch, which starts at the argument next, by as much.
func (t Rows) Steps(n, panel reg.GPVirtual, panelStep, rowStep int, do func(next *Ahead)) {
	next := &Ahead{at: Arg("next"), bytes: t.count * rowStep}
	Label("next")
	do(next)
	ADDQ(Imm(panelStep), panel)
	t.Advance(Imm(rowStep))
	next.Advance()
	DECQ(n)
	JNZ(operand.LabelRef("next"))
	VZEROUPPER()
	RET()
}
