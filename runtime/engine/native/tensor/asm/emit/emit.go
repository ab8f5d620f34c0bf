// Package emit holds code shared by the generators of the instruction sets: addresses, arguments and layouts.
package emit

import (
	"math"

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

// Imm returns a 32-bit constant, which every instruction with a constant and a 64-bit register accepts.
func Imm(n int) operand.Op { return operand.I32(n) }

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

// ExpPolynomial holds the coefficients of Exp in package tensor, highest power first.
var ExpPolynomial = []float64{
	1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
}

// Constants of Exp in package tensor.
const (
	ExpLog2e, ExpLn2High, ExpLn2Low = 1.44269504088896341, 0.693359375, -2.12194440e-4
	ExpLow, ExpHigh                 = -87.3365447505, 88.3762626647949
)
