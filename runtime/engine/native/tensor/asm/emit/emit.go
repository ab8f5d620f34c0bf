// Package emit holds code shared by the generators of the instruction sets: addresses, arguments and layouts.
package emit

import (
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in an actBlock, as declared in package tensor.
const (
	ActScale, ActSum, ActOff, ActOff0, ActOff1, ActOff32 = 32, 36, 40, 44, 48, 52
	ActSize                                              = 64
)

// Mem returns the address base+disp, in bytes.
func Mem(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// Indexed returns the address base+index+disp, in bytes.
func Indexed(base, index reg.Register, disp int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: 1, Disp: disp}
}

// Arg loads a 64-bit argument into a new register.
func Arg(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name), r)
	return r
}

// Slice loads the address of the first element of an argument into a new register, and Length its number of elements.
func Slice(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name).Base(), r)
	return r
}

func Length(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name).Len(), r)
	return r
}

// Kernel begins a function that package tensor calls. No length may be 0. about describes it.
func Kernel(name, signature, about string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(strings.Split(name+" "+about, "\n")...)
}

// How package tensor calls the kernels of both instruction sets. Strides are in bytes.
const (
	PackSignature = "func(panel, base *byte, stride, blocks int, next uintptr)"
	PackAbout     = "unpacks rows, stride bytes apart, of blocks times 32 columns, and prefetches as many bytes at next.\n" +
		"For K-quants blocks is a multiple of 8."

	GemmSignature = "func(panel *byte, blocks int, act *byte, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)"
	GemmAbout     = "multiplies a panel by n vectors. The result for vector act + in[j]*actStride is written (added if add is set) to\n" +
		"the values at dst + out[j]*dstStride that mask selects, one for each row."

	FloatsSignature = "func(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)"
	FloatsAbout     = "multiplies up to 4 rows, stride bytes apart, by n vectors of float32. The results for vector x + in[j]*xStride\n" +
		"are written to the rows values at dst + out[j]*dstStride."

	GemvSignature = "func(dst *float32, base *byte, stride, tiles, blocks int, act *byte)"
	GemvAbout     = "multiplies tiles of rows, stride bytes apart, of blocks of weights by one vector."

	ScoresSignature = "func(scores *float32, stride int, q *float32, rows int, keys *uint16, dim, positions int)"
	MixSignature    = "func(out, weights *float32, stride, rows int, values *uint16, dim, n int)"
)

// Imm returns a 32-bit constant, which every instruction with a constant and a 64-bit register accepts.
func Imm(n int) operand.Op { return operand.I32(n) }

var constants = map[string]operand.Mem{}

// Constant returns the address of the constant of a name, which it defines when it is first used, with n numbers of 16 or
// 32 bits.
func Constant(name string, bits, n int, value func(i int) int) operand.Mem {
	m, defined := constants[name]
	if !defined {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range n {
			if bits == 16 {
				DATA(2*i, operand.U16(uint16(value(i))))
			} else {
				DATA(4*i, operand.U32(uint32(value(i))))
			}
		}
		constants[name] = m
	}
	return m
}

// Bits returns the bits of v as a float32.
func Bits(v float64) uint32 { return math.Float32bits(float32(v)) }

// Pointers returns base + index*stride for the next v indexes of the list.
func Pointers(list reg.GPVirtual, base, stride string, v int) []reg.Register {
	step, start := Arg(stride), Arg(base)
	p := make([]reg.Register, v)
	for i := range p {
		r := GP64()
		MOVLQSX(Mem(list, 4*i), r)
		IMULQ(step, r)
		ADDQ(start, r)
		p[i] = r
	}
	return p
}

// Results calls do with the address dst + index*dstStride of each of the next v results.
func Results(list reg.GPVirtual, v int, do func(i int, m operand.Mem)) {
	step, start, r := Arg("dstStride"), Arg("dst"), GP64()
	for i := range v {
		MOVLQSX(Mem(list, 4*i), r)
		IMULQ(step, r)
		do(i, Indexed(start, r, 0))
	}
}

// FourRows points to four rows, stride bytes apart. If rows is less than 4, the last row is repeated.
func FourRows() [4]reg.GPVirtual {
	stride, rows := Arg("stride"), Arg("rows")
	p := [4]reg.GPVirtual{Arg("base")}
	for i := 1; i < 4; i++ {
		p[i] = GP64()
		LEAQ(Indexed(p[i-1], stride, 0), p[i])
		CMPQ(rows, operand.Imm(uint64(i)))
		CMOVQLE(p[i-1], p[i])
	}
	return p
}
