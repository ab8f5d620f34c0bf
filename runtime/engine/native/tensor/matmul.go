package tensor

import "fmt"

// MatVec computes dst[r] = row r of m · vector i of a, for r in lo..hi.
func MatVec(dst []float32, m *Matrix, lo, hi int, a *Activations, i int) {
	MatMul(dst, 0, m, lo, hi, a, i, i+1)
}

// MatMul computes dst[i*ldd+r] = row r of m · vector i of a, for r in lo..hi and i in i0..i1.
func MatMul(dst []float32, ldd int, m *Matrix, lo, hi int, a *Activations, i0, i1 int) {
	p := product{dst: dst, ldd: ldd, m: *m, a: a, first: i0, n: i1 - i0}
	p.check(lo, hi)
	p.run(lo, hi)
}

// MatMulGather computes dst[out[j]*ldd+r] = row r of m · vector in[j] of a, for r in lo..hi and all j. A nil list means
// 0, 1, 2, …; at least one list must be given, and their lengths must match.
func MatMulGather(dst []float32, ldd int, m *Matrix, lo, hi int, a *Activations, in, out []int32) {
	p := product{dst: dst, ldd: ldd, m: *m, a: a, in: in, out: out, n: max(len(in), len(out))}
	p.check(lo, hi)
	p.run(lo, hi)
}

// product holds the arguments of one of the functions above.
type product struct {
	dst     []float32
	ldd     int
	m       Matrix // a copy: Go would move the original to the heap, since kernels in a table may keep what they get
	a       *Activations
	in, out []int32 // nil: first, first+1, …
	first   int
	n       int
}

// check panics if sizes do not match, because the kernels do not check bounds.
func (p *product) check(lo, hi int) {
	m, a := p.m, p.a
	switch {
	case lo < 0 || lo > hi || hi > m.Rows || len(m.Data) < m.Rows*m.Type.RowBytes(m.Cols):
		panic(fmt.Sprintf("tensor: rows %d..%d of a matrix of %d rows in %d bytes", lo, hi, m.Rows, len(m.Data)))
	case a.cols != m.Cols || m.Type.Form()&a.forms == 0:
		panic(fmt.Sprintf("tensor: activations of %d columns, without the form for %s of %d", a.cols, m.Type, m.Cols))
	case p.in != nil && p.out != nil && len(p.in) != len(p.out):
		panic(fmt.Sprintf("tensor: lists of %d inputs and %d outputs", len(p.in), len(p.out)))
	case p.n == 0:
		return
	}
	in0, in1 := bounds(p.in, p.first, p.n)
	out0, out1 := bounds(p.out, p.first, p.n)
	if in0 < 0 || in1 >= a.n || out0 < 0 || out1*p.ldd+hi > len(p.dst) {
		panic(fmt.Sprintf("tensor: vectors %d..%d of %d to rows %d..%d of %d, %d apart", in0, in1, a.n, out0, out1, len(p.dst), p.ldd))
	}
}

// bounds returns the smallest and the largest of n > 0 indexes.
func bounds(list []int32, first, n int) (least, greatest int) {
	if list == nil {
		return first, first + n - 1
	}
	low, high := list[0], list[0]
	for _, i := range list {
		low, high = min(low, i), max(high, i)
	}
	return int(low), int(high)
}

// vector returns the index of the j-th input vector.
func (p *product) vector(j int) int {
	if p.in == nil {
		return p.first + j
	}
	return int(p.in[j])
}

// row returns the index of the j-th output row in dst.
func (p *product) row(j int) int {
	if p.out == nil {
		return p.first + j
	}
	return int(p.out[j])
}
