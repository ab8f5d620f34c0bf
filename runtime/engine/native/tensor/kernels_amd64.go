package tensor

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

//go:generate go -C asm run ./avx2 -out ../avx2_amd64.s -stubs ../avx2_amd64.go -pkg tensor
//go:generate go -C asm run ./avx512 -out ../avx512_amd64.s -stubs ../avx512_amd64.go -pkg tensor

func detect() level {
	switch cpu := &cpuid.CPU; {
	case !cpu.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C):
		return portable
	case cpu.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI):
		return avx512
	}
	return avx2
}

var sets = [...]kernels{
	portable: portableKernels,
	avx2: {
		dot: dotAVX2, axpy: axpyAVX2, addTo: addToAVX2, scaleTo: scaleToAVX2, scaleMul: scaleMulAVX2, expSum: expSumAVX2, swiGLU: swiGLUAVX2,
		rotateHalves: rotateHalvesAVX2, floatsToHalves: halvesAVX2, quantizeQ80: quantize, attnScores: attnScoresAVX2, attnMix: attnMixAVX2,
	},
	avx512: {
		dot: dotAVX512, axpy: axpyAVX512, addTo: addToAVX512, scaleTo: scaleToAVX512, scaleMul: scaleMulAVX512, expSum: expSumAVX512, swiGLU: swiGLUAVX512,
		rotateHalves: rotateHalvesAVX512, floatsToHalves: floatsToHalvesAVX512, quantizeQ80: quantize, attnScores: attnScoresAVX512, attnMix: attnMixAVX512,
	},
}

// quantize uses AVX2 with AVX-512, too: wider registers were slower.
func quantize(dst []actBlock, x []float32) {
	quantizeQ80AVX2((*byte)(unsafe.Pointer(&dst[0])), &x[0], len(dst))
}

// halvesAVX2 converts whole eights with AVX2.
func halvesAVX2(dst []uint16, src []float32) {
	n := len(src) &^ 7
	if n > 0 {
		floatsToHalvesAVX2(dst[:n], src[:n])
	}
	floatsToHalvesGo(dst[n:], src[n:])
}

// products are the kernels that multiply by one type of weights. Quantised weights are unpacked to panels or, for one
// vector, used in whole tiles of rows; up to four rows of floats are multiplied at once.
type products struct {
	pack   func(panel, base *byte, stride, blocks int, next uintptr)
	gemm   func(panel *byte, blocks int, act *byte, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)
	gemv   func(dst *float32, base *byte, stride, tiles, blocks int, act *byte)
	floats func(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)
}

var productsOf = [...][BF16 + 1]products{
	avx2: {
		Q8_0: {packQ80AVX2, gemmAVX2, gemvQ80AVX2, nil},
		Q4_0: {packQ40AVX2, gemmAVX2, gemvQ40AVX2, nil},
		Q4_K: {packQ4KAVX2, gemmMinAVX2, gemvQ4KAVX2, nil},
		Q5_K: {packQ5KAVX2, gemmMinAVX2, gemvQ5KAVX2, nil},
		Q6_K: {packQ6KAVX2, gemmHalvesAVX2, gemvQ6KAVX2, nil},
		F32:  {floats: gemmF32AVX2},
		F16:  {floats: gemmF16AVX2},
		BF16: {floats: gemmBF16AVX2},
	},
	avx512: {
		Q8_0: {packQ80AVX512, gemmAVX512, gemvQ80AVX512, nil},
		Q4_0: {packQ40AVX512, gemmAVX512, gemvQ40AVX512, nil},
		Q4_K: {packQ4KAVX512, gemmMinAVX512, gemvQ4KAVX512, nil},
		Q5_K: {packQ5KAVX512, gemmMinAVX512, gemvQ5KAVX512, nil},
		Q6_K: {packQ6KAVX512, gemmHalvesAVX512, gemvQ6KAVX512, nil},
		F32:  {floats: gemmF32AVX512},
		F16:  {floats: gemmF16AVX512},
		BF16: {floats: gemmBF16AVX512},
	},
}

// run computes rows lo..hi of a product.
func (p *product) run(lo, hi int) {
	form := p.m.Type.Form()
	switch {
	case lo >= hi || p.n == 0:
	case active == portable || active == avx2 && form == FormF32 && p.m.Cols%8 != 0:
		p.runGo(lo, hi)
	case form == FormF32:
		p.runFloats(lo, hi)
	case p.n == 1: // a panel would be used once
		p.runPanels(p.runTiles(lo, hi), hi)
	default:
		p.runPanels(lo, hi)
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
	multiply, stride, cols := productsOf[active][p.m.Type].floats, p.m.Type.RowBytes(p.m.Cols), p.m.Cols
	in, firstIn := p.list(p.in, from)
	out, firstOut := p.list(p.out, from)
	for r := lo; r < hi; r += 4 {
		w, x, d := &p.m.Data[r*stride], &p.a.f32[firstIn*cols], &p.dst[firstOut*p.ldd+r]
		multiply(w, stride, min(4, hi-r), cols, x, 4*cols, d, 4*p.ldd, &in[0], &out[0], to-from)
	}
}
