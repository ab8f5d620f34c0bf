package emit

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Exponential emits Exp of package tensor. Its constants are in registers or in memory.
type Exponential struct {
	Low, High, One         operand.Op
	log2e, ln2High, ln2Low operand.Op
	polynomial             []operand.Op
}

// NewExponential returns the code with the constants that constant provides.
func NewExponential(constant func(v float64) operand.Op) *Exponential {
	e := &Exponential{
		log2e: constant(1.44269504088896341), High: constant(88.3762626647949), Low: constant(-87.3365447505),
		ln2High: constant(0.693359375), ln2Low: constant(-2.12194440e-4), One: constant(1),
	}
	for _, c := range []float64{
		1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
	} {
		e.polynomial = append(e.polynomial, constant(c))
	}
	return e
}

// Parts splits the exponential of x, which it overwrites: it is p times the n-th power of two. round rounds a register
// to the nearest integers.
func (e *Exponential) Parts(x reg.VecVirtual, next func() reg.VecVirtual, round func(n reg.VecVirtual)) (n, p reg.VecVirtual) {
	n, p, square := next(), next(), next()
	VMULPS(e.log2e, x, n)
	round(n)
	VFNMADD231PS(e.ln2High, n, x)
	VFNMADD231PS(e.ln2Low, n, x)
	VMOVUPS(e.polynomial[0], p)
	for _, c := range e.polynomial[1:] {
		VFMADD213PS(c, x, p)
	}
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	VADDPS(e.One, p, p)
	return n, p
}

// Activations emits the kernels of activation functions. exponential returns the constants, and the code that replaces a
// register by its exponential; one is 1.
func (v Vector) Activations(exponential func() (one operand.Op, of func(x reg.VecVirtual))) {
	Kernel("swiGLU"+v.Suffix, "func(dst, gate, up []float32)", "writes silu(gate)*up to dst.")
	s := v.Span([]string{"dst", "gate", "up"}, "")
	one, exp := exponential()
	sign := v.Splat(1 << 31)
	s.Loop("loop", func(s *Span) {
		gate, e := s.Get("gate"), v.New()
		VXORPS(sign, gate, e)
		exp(e)
		VADDPS(one, e, e)
		VDIVPS(e, gate, gate)
		VMULPS(s.Get("up"), gate, gate)
		s.Put(gate, "dst")
	})
	VZEROUPPER()
	RET()

	Kernel("expSum"+v.Suffix, "func(x []float32, scale float32) float32", "replaces x by exp(scale*x - max(scale*x)) and returns the sum.")
	s = v.Span([]string{"x"}, "scale")
	_, exp = exponential()
	top, sum := v.Splat(Bits(math.Inf(-1))), v.New()
	Zero(sum)
	s.Loop("max", func(s *Span) {
		x := s.Get("x")
		VMULPS(s.Scalar, x, x)
		v.Max(x, s.Mask, top)
	})
	VBROADCASTSS(v.Reduce(top, MaxPS), top)
	s.Loop("exp", func(s *Span) {
		x := s.Get("x")
		VFMSUB213PS(top, s.Scalar, x)
		exp(x)
		v.Add(x, s.Mask, sum)
		s.Put(x, "x")
	})
	r := v.Reduce(sum, AddPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}
