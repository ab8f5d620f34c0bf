package tensor

// MatVec computes dst[r] = row r of m · vector i of a, for r in lo..hi.
func MatVec(dst []float32, m *Matrix, lo, hi int, a *Activations, i int) {
	MatMul(dst[:hi], 0, m, lo, hi, a, i, i+1)
}

// MatMul computes dst[i*ldd+r] = row r of m · vector i of a, for r in lo..hi and i in i0..i1.
func MatMul(dst []float32, ldd int, m *Matrix, lo, hi int, a *Activations, i0, i1 int) {
	p := product{dst: dst, ldd: ldd, m: m, a: a, first: i0, n: i1 - i0}
	p.run(lo, hi)
}

// MatMulGather computes dst[out[j]*ldd+r] = row r of m · vector in[j] of a, for r in lo..hi and all j.
// A nil list stands for 0, 1, 2, …; one of the two must be given, and their lengths must agree.
func MatMulGather(dst []float32, ldd int, m *Matrix, lo, hi int, a *Activations, in, out []int32) {
	p := product{dst: dst, ldd: ldd, m: m, a: a, in: in, out: out, n: max(len(in), len(out))}
	p.run(lo, hi)
}

// product is one call of the functions above.
type product struct {
	dst     []float32
	ldd     int
	m       *Matrix
	a       *Activations
	in, out []int32 // nil: first, first+1, …
	first   int
	n       int
}

// vector is the index of the j-th input vector.
func (p *product) vector(j int) int {
	if p.in == nil {
		return p.first + j
	}
	return int(p.in[j])
}

// row is the index of the j-th output row in dst.
func (p *product) row(j int) int {
	if p.out == nil {
		return p.first + j
	}
	return int(p.out[j])
}
