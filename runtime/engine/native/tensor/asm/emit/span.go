package emit

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Vector is how an instruction set processes float32 values: a register of them at a time, and fewer with a mask.
type Vector struct {
	Suffix string                             // of the names of kernels
	Lanes  int                                // values in a register
	New    func() reg.VecVirtual              // new register
	Splat  func(bits uint32) reg.VecVirtual   // new register with copies of a constant
	Read   func(from, mask, to operand.Op)    // moves the values that mask selects to a register
	Write  func(from, mask, to operand.Op)    // the same to memory
	Tail   func(n reg.GPVirtual) reg.Register // mask of the last of n values, made before a loop; nil: Rest makes it
	// Rest emits code after a loop that left n values, less a register: it jumps to end if none are left, unless end is "",
	// and returns the mask of the others.
	Rest func(left reg.GPVirtual, tail reg.Register, end string) reg.Register
	// Add and Max combine x, of which mask selects values unless it is nil, with into. They may change the others.
	Add, Max func(x reg.VecVirtual, mask reg.Register, into reg.VecVirtual)
	// Reduce combines the lanes of a register into the first one of the result.
	Reduce func(x reg.VecVirtual, op func(a, b, c reg.Register)) reg.VecVirtual
}

// Span is the range of values that the emitted code processes: one register of them, or fewer with a mask.
type Span struct {
	Vector
	Ptr    map[string]reg.GPVirtual
	last   string // of the arguments, whose length is the number of values
	Scalar reg.VecVirtual
	At     reg.GPVirtual // index of the first value
	Mask   reg.Register  // nil: all lanes
}

// Span loads slices, and a scalar unless it is "", from arguments.
func (v Vector) Span(slices []string, scalar string) *Span {
	s := &Span{Vector: v, Ptr: map[string]reg.GPVirtual{}, At: GP64()}
	for _, name := range slices {
		s.Ptr[name], s.last = Slice(name), name
	}
	if scalar != "" {
		x := XMM()
		s.Scalar = v.New()
		Load(Param(scalar), x)
		VBROADCASTSS(x, s.Scalar)
	}
	return s
}

func (s *Span) mem(name string) operand.Mem {
	return operand.Mem{Base: s.Ptr[name], Index: s.At, Scale: 4}
}

// Get returns the values at a pointer.
func (s *Span) Get(name string) reg.VecVirtual {
	r := s.New()
	if s.Mask == nil {
		VMOVUPS(s.mem(name), r)
	} else {
		s.Read(s.mem(name), s.Mask, r)
	}
	return r
}

// Put writes values to a pointer.
func (s *Span) Put(r reg.VecVirtual, name string) {
	if s.Mask == nil {
		VMOVUPS(r, s.mem(name))
	} else {
		s.Write(r, s.Mask, s.mem(name))
	}
}

// count returns the number of values, and the mask of the last of them.
func (s *Span) count() (n reg.GPVirtual, tail reg.Register) {
	n = Length(s.last)
	if s.Tail != nil {
		tail = s.Tail(Length(s.last))
	}
	return n, tail
}

// Loop emits do for a register of values in a loop, and once for the rest. The labels start with name.
func (s *Span) Loop(name string, do func(s *Span)) {
	left, tail := s.count()
	XORQ(s.At, s.At)
	Label(name)
	SUBQ(operand.Imm(uint64(s.Lanes)), left)
	JLT(operand.LabelRef(name + "Rest"))
	s.Mask = nil
	do(s)
	ADDQ(operand.Imm(uint64(s.Lanes)), s.At)
	JMP(operand.LabelRef(name))
	Label(name + "Rest")
	s.Mask = s.Rest(left, tail, name+"End")
	do(s)
	Label(name + "End")
	s.Mask = nil
}

// elementwise emits a helper that processes each value separately.
func (v Vector) elementwise(name, signature string, slices []string, scalar string, do func(s *Span)) {
	Kernel(name+v.Suffix, signature, "processes each value separately.")
	v.Span(slices, scalar).Loop("loop", do)
	VZEROUPPER()
	RET()
}

// Elementwise emits the helpers that process each value separately.
func (v Vector) Elementwise() {
	v.elementwise("addTo", "func(y, x []float32)", []string{"y", "x"}, "", func(s *Span) {
		x := s.Get("x")
		VADDPS(s.Get("y"), x, x)
		s.Put(x, "y")
	})
	v.elementwise("axpy", "func(y []float32, a float32, x []float32)", []string{"y", "x"}, "a", func(s *Span) {
		y := s.Get("y")
		VFMADD231PS(s.Scalar, s.Get("x"), y)
		s.Put(y, "y")
	})
	v.elementwise("scaleTo", "func(dst, x []float32, s float32)", []string{"dst", "x"}, "s", func(s *Span) {
		x := s.Get("x")
		VMULPS(s.Scalar, x, x)
		s.Put(x, "dst")
	})
	v.elementwise("scaleMul", "func(dst, x, w []float32, s float32)", []string{"dst", "x", "w"}, "s", func(s *Span) {
		x := s.Get("x")
		VMULPS(s.Scalar, x, x)
		VMULPS(s.Get("w"), x, x)
		s.Put(x, "dst")
	})
	v.elementwise("rotateHalves", "func(x, y, cos, sin []float32)", []string{"x", "y", "cos", "sin"}, "", func(s *Span) {
		x, y, cos, sin := s.Get("x"), s.Get("y"), s.Get("cos"), s.Get("sin")
		a, b := s.New(), s.New()
		VMULPS(sin, y, a)
		VMULPS(cos, y, b)
		VFMSUB231PS(cos, x, a)
		VFMADD231PS(sin, x, b)
		s.Put(a, "x")
		s.Put(b, "y")
	})
}

// Dot emits the inner product. It uses four accumulators in turn, then only the first.
func (v Vector) Dot() {
	Kernel("dot"+v.Suffix, "func(x, y []float32) float32", "returns the inner product.")
	s := v.Span([]string{"x", "y"}, "")
	sums := []reg.VecVirtual{v.New(), v.New(), v.New(), v.New()}
	n, tail := s.count()
	lanes := v.Lanes
	for _, sum := range sums {
		VXORPS(sum, sum, sum)
	}
	XORQ(s.At, s.At)
	Label("wide")
	SUBQ(operand.Imm(uint64(4*lanes)), n)
	JLT(operand.LabelRef("few"))
	for i, sum := range sums {
		x := v.New()
		VMOVUPS(s.mem("x").Offset(4*lanes*i), x)
		VFMADD231PS(s.mem("y").Offset(4*lanes*i), x, sum)
	}
	ADDQ(operand.Imm(uint64(4*lanes)), s.At)
	JMP(operand.LabelRef("wide"))
	Label("few")
	ADDQ(operand.Imm(uint64(4*lanes)), n)
	Label("next")
	SUBQ(operand.Imm(uint64(lanes)), n)
	JLT(operand.LabelRef("rest"))
	VFMADD231PS(s.Get("x"), s.Get("y"), sums[0])
	ADDQ(operand.Imm(uint64(lanes)), s.At)
	JMP(operand.LabelRef("next"))
	Label("rest")
	s.Mask = s.Rest(n, tail, "")
	VFMADD231PS(s.Get("x"), s.Get("y"), sums[0])
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	r := v.Reduce(sums[0], AddPS)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}
