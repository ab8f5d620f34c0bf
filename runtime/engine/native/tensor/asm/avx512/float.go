package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loadTail converts the weights that a mask selects.
func loadTail(s Source, m operand.Op, mask reg.OpmaskVirtual, z reg.VecVirtual) {
	if s.Size == 4 {
		VMOVUPS_Z(m, mask, z)
		return
	}
	h := YMM()
	VMOVDQU16_Z(m, mask, h)
	s.Load(h, z)
}

// floats emits the products of up to four rows of floating-point weights with n vectors. Lane l of an accumulator sums
// the columns l, l+16, … for any number of vectors.
func floats() {
	for _, s := range Sources {
		Kernel("gemm"+s.Name+"AVX512", FloatsSignature, FloatsAbout)
		p, keep := FourRows(), firstLanes(Arg("rows"))
		tail := tailMask(Arg("cols"))
		in, out, n := Arg("in"), Arg("out"), Arg("n")
		Label("four")
		CMPQ(n, operand.Imm(4))
		JLT(operand.LabelRef("rest3"))
		floatVectors(s, 4, p, keep, tail, in, out)
		SUBQ(operand.Imm(4), n)
		JMP(operand.LabelRef("four"))
		for v := 3; v > 0; v-- {
			Label(fmt.Sprint("rest", v))
			CMPQ(n, Imm(v))
			JNE(operand.LabelRef(fmt.Sprint("rest", v-1)))
			floatVectors(s, v, p, keep, tail, in, out)
		}
		Label("rest0")
		VZEROUPPER()
		RET()
	}
}

// tailMask returns a mask with a bit for each of the last n%16 values.
func tailMask(n reg.GPVirtual) reg.OpmaskVirtual {
	ANDL(operand.U32(lanes-1), n.As32())
	return firstLanes(n)
}

// firstLanes returns a mask with a bit for each of the first n lanes.
func firstLanes(n reg.GPVirtual) reg.OpmaskVirtual {
	bits, mask := GP32(), K()
	MOVL(operand.U32(1), bits)
	SHLXL(n.As32(), bits, bits)
	DECL(bits)
	KMOVW(bits, mask)
	return mask
}

// floatVectors emits the product of four rows with the next v vectors. With one vector, reading the weights takes the time:
// the rows are read one after the other, in the order of memory, and ahead of their use.
func floatVectors(s Source, v int, rows [4]reg.GPVirtual, keep, tail reg.OpmaskVirtual, in, out reg.GPVirtual) {
	xs := Pointers(in, "x", "xStride", v)
	sums := zmms(4 * v)
	Zero(sums...)
	if v > 1 {
		next := AheadOf(rows[0], Arg("stride"), len(rows), lanes*s.Size)
		floatColumns(s, fmt.Sprint(v), rows[:], xs, tail, sums, 1, func(reg.GPVirtual) {
			next.Fetch(1, 1)
			next.Advance()
		})
	} else {
		for r := range rows {
			floatColumns(s, fmt.Sprint(v, "row", r), rows[r:r+1], xs, tail, sums[r:r+1], CacheLine/(lanes*s.Size), func(at reg.GPVirtual) {
				PREFETCHT1(operand.Mem{Base: rows[r], Index: at, Scale: uint8(s.Size), Disp: StreamAhead})
			})
		}
	}
	Results(out, v, func(i int, m operand.Mem) { VMOVUPS(fourSums(sums[4*i:4*i+4]).AsX(), keep, m) })
	ADDQ(Imm(4*v), in)
	ADDQ(Imm(4*v), out)
}

// floatColumns adds the products of all columns of some rows to sums, one for each vector and row. fetch emits code that
// runs once for the given number of steps.
func floatColumns(s Source, name string, rows []reg.GPVirtual, xs []reg.Register, tail reg.OpmaskVirtual, sums []reg.VecVirtual, steps int, fetch func(at reg.GPVirtual)) {
	at := Columns(name, lanes, steps, fetch, func(at reg.GPVirtual) {
		floatStep(s, rows, xs, at, sums, s.Load, func(m operand.Op, z reg.VecVirtual) { VMOVUPS(m, z) })
	})
	JZ(operand.LabelRef("sums" + name))
	floatStep(s, rows, xs, at, sums,
		func(m operand.Op, z reg.VecVirtual) { loadTail(s, m, tail, z) },
		func(m operand.Op, z reg.VecVirtual) { VMOVUPS_Z(m, tail, z) })
	Label("sums" + name)
}

// floatStep adds the products of up to 16 columns.
func floatStep(s Source, rows []reg.GPVirtual, xs []reg.Register, at reg.GPVirtual, sums []reg.VecVirtual, loadW, loadX func(operand.Op, reg.VecVirtual)) {
	w := zmms(len(rows))
	for r, p := range rows {
		loadW(operand.Mem{Base: p, Index: at, Scale: uint8(s.Size)}, w[r])
	}
	for i, x := range xs {
		v := ZMM()
		loadX(operand.Mem{Base: x, Index: at, Scale: 4}, v)
		for r := range w {
			VFMADD231PS(v, w[r], sums[len(rows)*i+r])
		}
	}
}

// fourSums reduces four registers to their sums, in the first four lanes of one.
func fourSums(z []reg.VecVirtual) reg.VecVirtual {
	low, high, low2, high2 := ZMM(), ZMM(), ZMM(), ZMM()
	VUNPCKLPS(z[1], z[0], low)
	VUNPCKHPS(z[1], z[0], high)
	VADDPS(high, low, low)
	VUNPCKLPS(z[3], z[2], low2)
	VUNPCKHPS(z[3], z[2], high2)
	VADDPS(high2, low2, low2)
	VUNPCKLPD(low2, low, high)
	VUNPCKHPD(low2, low, high2)
	VADDPS(high2, high, low)
	half, quarter := YMM(), XMM()
	VEXTRACTF64X4(operand.Imm(1), low, half)
	VADDPS(low.AsY(), half, half)
	VEXTRACTF32X4(operand.Imm(1), half, quarter)
	sum := ZMM()
	VADDPS(half.AsX(), quarter, sum.AsX())
	return sum
}
