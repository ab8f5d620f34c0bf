package emit

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Form describes how the blocks of a panel are scaled.
type Form struct {
	Name   string // of the kernel, without the instruction set
	Halves bool   // two scales for the two halves of a block
	HasMin bool
}

// Forms are those of all types of quantised weights.
var Forms = []Form{{Name: "gemm"}, {Name: "gemmMin", HasMin: true}, {Name: "gemmHalves", Halves: true}}

// Source is a type of floating-point weights of Size bytes, with the code that converts a register of them to float32.
type Source struct {
	Name string
	Size int
	Load func(from operand.Op, to reg.VecVirtual)
}

// Sources are all types of floating-point weights.
var Sources = []Source{
	{"F32", 4, func(from operand.Op, to reg.VecVirtual) { VMOVUPS(from, to) }},
	{"F16", 2, func(from operand.Op, to reg.VecVirtual) { VCVTPH2PS(from, to) }},
	{"BF16", 2, func(from operand.Op, to reg.VecVirtual) {
		VPMOVZXWD(from, to)
		VPSLLD(operand.Imm(16), to, to)
	}},
}
