// Command avx2 generates the AVX2 kernels of package tensor, which also use FMA and F16C.
package main

import (
	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is the number of float32 values in a register, which equals the number of rows in a panel.
const lanes = 8

// Offsets in a block of a panel: 8 dwords of 8 rows, two scales, and a minimum or the factor of both scales.
const (
	panelScale, panelScale1, panelMin = 256, 288, 320
	panelSize                         = 352
)

func main() {
	ConstraintExpr("amd64")
	gemms()
	gemvs()
	packs()
	floats()
	vector.Elementwise()
	vector.Dot()
	vector.Activations(exponential)
	quantizeQ80()
	halves()
	attention()
	Generate()
}

func ymms(n int) []reg.VecVirtual { return Registers(n, YMM) }

// splat fills a register with copies of a 32-bit constant.
func splat(bits uint32) reg.VecVirtual {
	r, x, y := GP32(), XMM(), YMM()
	MOVL(operand.U32(bits), r)
	VMOVD(r, x)
	VPBROADCASTD(x, y)
	return y
}

// firstLanes selects the first n lanes: a mask for VMASKMOVPS.
func firstLanes(n reg.GPVirtual) reg.VecVirtual {
	x, mask, index := XMM(), YMM(), ascending()
	VMOVD(n.As32(), x)
	VPBROADCASTD(x, mask)
	VPCMPGTD(index, mask, mask)
	return mask
}

// chosenLanes selects the lanes whose bits are set in n.
func chosenLanes(n reg.GPVirtual) reg.VecVirtual {
	x, mask, bits := XMM(), YMM(), YMM()
	VMOVD(n.As32(), x)
	VPBROADCASTD(x, mask)
	VMOVDQU(powers(), bits)
	VPAND(bits, mask, mask)
	VPCMPEQD(bits, mask, mask)
	return mask
}

// ascending returns a constant with the dwords 0, 1, …, 7.
func ascending() operand.Mem {
	return constant("ascendingAVX2", func(i int) uint32 { return uint32(i) })
}

// powers returns a constant with the dwords 1, 2, …, 128.
func powers() operand.Mem {
	return constant("powersAVX2", func(i int) uint32 { return 1 << i })
}

// order returns a permutation that sorts dwords interleaved by two packing instructions.
func order() operand.Mem {
	return constant("orderAVX2", func(i int) uint32 { return uint32(i/2 + i%2*4) })
}

// constant returns the address of a register's dwords.
func constant(name string, value func(i int) uint32) operand.Mem {
	return Constant(name, 32, lanes, func(i int) int { return int(value(i)) })
}

// reduce combines the lanes of y into the first one of the result.
func reduce(y reg.VecVirtual, op func(a, b, c reg.Register)) reg.VecVirtual {
	quarter, x := XMM(), XMM()
	VEXTRACTF128(operand.Imm(1), y, quarter)
	op(y.AsX(), quarter, quarter)
	VPERMILPS(operand.Imm(0x4e), quarter, x)
	op(quarter, x, quarter)
	VPERMILPS(operand.Imm(0xb1), quarter, x)
	op(quarter, x, quarter)
	return quarter
}
