// Command avx512 generates the AVX-512 VNNI kernels of package tensor.
package main

import (
	"fmt"

	. "github.com/llmtop/llmtop/runtime/engine/native/tensor/asm/emit"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in a block of a panel, as declared in package tensor.
const (
	panelScale, panelScale1, panelMin = 512, 576, 640
	panelSize                         = 704
)

// lanes is the number of float32 values in a register, which equals the number of rows in a panel.
const lanes = 16

func main() {
	ConstraintExpr("amd64")
	gemms()
	gemvs()
	packs()
	floats()
	vector.Elementwise()
	vector.Dot()
	vector.Activations(exponential)
	halves()
	attention()
	Generate()
}

func zmms(n int) []reg.VecVirtual { return Registers(n, ZMM) }

// splat fills a register with copies of a 32-bit constant.
func splat(bits uint32) reg.VecVirtual {
	r, z := GP32(), ZMM()
	MOVL(operand.U32(bits), r)
	VPBROADCASTD(r, z)
	return z
}

// dword returns the address of a 32-bit constant, where registers are scarce.
func dword(bits uint32) operand.Mem {
	return Constant(fmt.Sprintf("dword%08xAVX512", bits), 32, 1, func(int) int { return int(bits) })
}

// table returns the address of a register's constants of 16 or 32 bits.
func table(name string, bits int, value func(i int) int) operand.Mem {
	return Constant(name+"AVX512", bits, 32*lanes/bits, value)
}

// load returns a register with the constants of a table.
func load(m operand.Mem) reg.VecVirtual {
	z := ZMM()
	VMOVDQU32(m, z)
	return z
}

// dotBytes adds, in each dword of sum, the products of the four unsigned bytes of w and the four signed bytes of x
// (VPDPBUSD, which avo does not support). With suffix BCST, x is one dword in memory.
func dotBytes(x operand.Op, w, sum reg.Register, suffixes ...string) {
	Instruction(&ir.Instruction{
		Opcode:   "VPDPBUSD",
		Suffixes: suffixes,
		Operands: []operand.Op{x, w, sum},
		Inputs:   []operand.Op{x, w, sum},
		Outputs:  []operand.Op{sum},
		ISA:      []string{"AVX512_VNNI"},
	})
}
