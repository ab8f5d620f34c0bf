package tensor

// runFloats computes rows lo..hi of a product with F32, F16 or BF16 weights, four rows at a time.
func (p *product) runFloats(lo, hi int) {
	stride, cols := p.m.Type.RowBytes(p.m.Cols), p.m.Cols
	for j := 0; j < p.n; {
		in, firstIn := p.list(p.in, j)
		out, firstOut := p.list(p.out, j)
		n := min(p.n-j, len(in), len(out))
		for r := lo; r < hi; r += 4 {
			w, x, d := &p.m.Data[r*stride], &p.a.f32[firstIn*cols], &p.dst[firstOut*p.ldd+r]
			gemmFloat(p.m.Type, w, stride, min(4, hi-r), cols, x, d, 4*p.ldd, &in[0], &out[0], n)
		}
		j += n
	}
}
