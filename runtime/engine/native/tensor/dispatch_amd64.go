package tensor

// The functions below select the kernel with a switch: with a table of functions, a panel on the stack would escape to the
// heap.

func pack(mem *panel, t Type, base *byte, stride, blocks int, next uintptr) {
	if active == avx2 {
		packWithAVX2(mem, t, base, stride, blocks, next)
		return
	}
	switch t {
	case Q8_0:
		packQ80AVX512(mem, base, stride, blocks, next)
	case Q4_0:
		packQ40AVX512(mem, base, stride, blocks, next)
	case Q4_K:
		packQ4KAVX512(mem, base, stride, blocks, next)
	case Q5_K:
		packQ5KAVX512(mem, base, stride, blocks, next)
	case Q6_K:
		packQ6KAVX512(mem, base, stride, blocks, next)
	}
}

func packWithAVX2(mem *panel, t Type, base *byte, stride, blocks int, next uintptr) {
	switch t {
	case Q8_0:
		packQ80AVX2(mem, base, stride, blocks, next)
	case Q4_0:
		packQ40AVX2(mem, base, stride, blocks, next)
	case Q4_K:
		packQ4KAVX2(mem, base, stride, blocks, next)
	case Q5_K:
		packQ5KAVX2(mem, base, stride, blocks, next)
	case Q6_K:
		packQ6KAVX2(mem, base, stride, blocks, next)
	}
}

func gemm(t Type, mem *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool) {
	switch {
	case active == avx2 && halfScales(t):
		gemmHalvesAVX2(mem, blocks, act, actStride, dst, dstStride, in, out, n, mask, add)
	case active == avx2 && hasMin(t):
		gemmMinAVX2(mem, blocks, act, actStride, dst, dstStride, in, out, n, mask, add)
	case active == avx2:
		gemmAVX2(mem, blocks, act, actStride, dst, dstStride, in, out, n, mask, add)
	case halfScales(t):
		gemmHalvesAVX512(mem, blocks, act, actStride, dst, dstStride, in, out, n, mask, add)
	case hasMin(t):
		gemmMinAVX512(mem, blocks, act, actStride, dst, dstStride, in, out, n, mask, add)
	default:
		gemmAVX512(mem, blocks, act, actStride, dst, dstStride, in, out, n, mask, add)
	}
}

// gemv multiplies tiles of rows, stride bytes and blocks of weights long, by one vector.
func gemv(t Type, dst *float32, base *byte, stride, tiles, blocks int, act *actBlock) {
	if active == avx2 {
		gemvWithAVX2(t, dst, base, stride, tiles, blocks, act)
		return
	}
	switch t {
	case Q8_0:
		gemvQ80AVX512(dst, base, stride, tiles, blocks, act)
	case Q4_0:
		gemvQ40AVX512(dst, base, stride, tiles, blocks, act)
	case Q4_K:
		gemvQ4KAVX512(dst, base, stride, tiles, blocks, act)
	case Q5_K:
		gemvQ5KAVX512(dst, base, stride, tiles, blocks, act)
	case Q6_K:
		gemvQ6KAVX512(dst, base, stride, tiles, blocks, act)
	}
}

func gemvWithAVX2(t Type, dst *float32, base *byte, stride, tiles, blocks int, act *actBlock) {
	switch t {
	case Q8_0:
		gemvQ80AVX2(dst, base, stride, tiles, blocks, act)
	case Q4_0:
		gemvQ40AVX2(dst, base, stride, tiles, blocks, act)
	case Q4_K:
		gemvQ4KAVX2(dst, base, stride, tiles, blocks, act)
	case Q5_K:
		gemvQ5KAVX2(dst, base, stride, tiles, blocks, act)
	case Q6_K:
		gemvQ6KAVX2(dst, base, stride, tiles, blocks, act)
	}
}

// gemmFloat multiplies up to four rows of floating-point weights.
func gemmFloat(t Type, base *byte, stride, rows, cols int, x *float32, dst *float32, dstStride int, in, out *int32, n int) {
	switch {
	case active == avx2 && t == F32:
		gemmF32AVX2(base, stride, rows, cols, x, 4*cols, dst, dstStride, in, out, n)
	case active == avx2 && t == F16:
		gemmF16AVX2(base, stride, rows, cols, x, 4*cols, dst, dstStride, in, out, n)
	case active == avx2 && t == BF16:
		gemmBF16AVX2(base, stride, rows, cols, x, 4*cols, dst, dstStride, in, out, n)
	case t == F32:
		gemmF32AVX512(base, stride, rows, cols, x, 4*cols, dst, dstStride, in, out, n)
	case t == F16:
		gemmF16AVX512(base, stride, rows, cols, x, 4*cols, dst, dstStride, in, out, n)
	case t == BF16:
		gemmBF16AVX512(base, stride, rows, cols, x, 4*cols, dst, dstStride, in, out, n)
	}
}

// nearRows and nearVectors are the parts of a product of floating-point matrices: weights stay in a core's second-level
// cache, and the vectors in its first-level cache.
const nearRows, nearVectors = 32, 4

// runFloats computes rows lo..hi of a product with F32, F16 or BF16 weights, four rows at a time.
func (p *product) runFloats(lo, hi int) {
	for part := lo; part < hi; part += nearRows {
		end := min(part+nearRows, hi)
		for j := 0; j < p.n; j += nearVectors {
			p.runFloatsOf(part, end, j, min(j+nearVectors, p.n))
		}
	}
}

func (p *product) runFloatsOf(lo, hi, from, to int) {
	stride, cols := p.m.Type.RowBytes(p.m.Cols), p.m.Cols
	in, firstIn := p.list(p.in, from)
	out, firstOut := p.list(p.out, from)
	for r := lo; r < hi; r += 4 {
		w, x, d := &p.m.Data[r*stride], &p.a.f32[firstIn*cols], &p.dst[firstOut*p.ldd+r]
		gemmFloat(p.m.Type, w, stride, min(4, hi-r), cols, x, d, 4*p.ldd, &in[0], &out[0], to-from)
	}
}
