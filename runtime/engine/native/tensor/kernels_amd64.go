//go:build amd64

package tensor

import "github.com/klauspost/cpuid/v2"

func detect() level {
	switch cpu := &cpuid.CPU; {
	case !cpu.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C):
		return portable
	case cpu.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI):
		return avx512
	}
	return avx2
}

// The functions below select the kernels for the rest of the package. None accepts an empty slice.

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

func dot(x, y []float32) float32 {
	switch active {
	case avx512:
		return dotAVX512(&x[0], &y[0], len(x))
	case avx2:
		return dotAVX2(&x[0], &y[0], len(x))
	}
	return dotGo(x, y)
}

func quantizeQ80(dst []actBlock, x []float32) {
	if active == portable {
		quantizeQ80Go(dst, x)
		return
	}
	quantizeQ80AVX2(&dst[0], &x[0], len(dst)) // wider registers were slower
}

func axpy(y []float32, a float32, x []float32) {
	switch active {
	case avx512:
		axpyAVX512(&y[0], a, &x[0], len(x))
	case avx2:
		axpyAVX2(&y[0], a, &x[0], len(x))
	default:
		axpyGo(y, a, x)
	}
}

func addTo(y, x []float32) {
	switch active {
	case avx512:
		addToAVX512(&y[0], &x[0], len(x))
	case avx2:
		addToAVX2(&y[0], &x[0], len(x))
	default:
		addToGo(y, x)
	}
}

func scaleTo(dst, x []float32, s float32) {
	switch active {
	case avx512:
		scaleToAVX512(&dst[0], &x[0], s, len(x))
	case avx2:
		scaleToAVX2(&dst[0], &x[0], s, len(x))
	default:
		scaleToGo(dst, x, s)
	}
}

func scaleMul(dst, x, w []float32, s float32) {
	switch active {
	case avx512:
		scaleMulAVX512(&dst[0], &x[0], &w[0], s, len(x))
	case avx2:
		scaleMulAVX2(&dst[0], &x[0], &w[0], s, len(x))
	default:
		scaleMulGo(dst, x, w, s)
	}
}

func expSum(x []float32, scale float32) float32 {
	switch active {
	case avx512:
		return expSumAVX512(&x[0], scale, len(x))
	case avx2:
		return expSumAVX2(&x[0], scale, len(x))
	}
	return expSumGo(x, scale)
}

func swiGLU(dst, gate, up []float32) {
	switch active {
	case avx512:
		swiGLUAVX512(&dst[0], &gate[0], &up[0], len(gate))
	case avx2:
		swiGLUAVX2(&dst[0], &gate[0], &up[0], len(gate))
	default:
		swiGLUGo(dst, gate, up)
	}
}

func rotateHalves(x, y, cos, sin []float32) {
	switch active {
	case avx512:
		rotateHalvesAVX512(&x[0], &y[0], &cos[0], &sin[0], len(cos))
	case avx2:
		rotateHalvesAVX2(&x[0], &y[0], &cos[0], &sin[0], len(cos))
	default:
		rotateHalvesGo(x, y, cos, sin)
	}
}

func floatsToHalves(dst []uint16, src []float32) {
	done := 0
	switch n := len(src) &^ 7; { // of which the AVX2 conversion takes whole eights
	case active == avx512:
		floatsToHalvesAVX512(&dst[0], &src[0], len(src))
		return
	case active == avx2 && n > 0:
		floatsToHalvesAVX2(&dst[0], &src[0], n)
		done = n
	}
	floatsToHalvesGo(dst[done:], src[done:])
}

func storeKey(tile []uint16, key []float32) { storeKeyGo(tile, key) }

func attnScores(scores []float32, stride int, q []float32, rows int, keys []uint16, dim int) {
	if active == portable {
		attnScoresGo(scores, stride, q, rows, keys, dim)
		return
	}
	for r := 0; r < rows; {
		n := rowsAtOnce(rows - r)
		if active == avx512 {
			attnScoresAVX512(&scores[r*stride], stride, &q[r*dim], n, &keys[0], dim, stride)
		} else {
			attnScoresAVX2(&scores[r*stride], stride, &q[r*dim], n, &keys[0], dim, stride)
		}
		r += n
	}
}

func attnMix(out, weights []float32, stride, rows int, values []uint16, dim, n int) {
	if active == portable || dim%16 != 0 {
		attnMixGo(out, weights, stride, rows, values, dim, n)
		return
	}
	for r := 0; r < rows; {
		k := rowsAtOnce(rows - r)
		if active == avx512 {
			attnMixAVX512(&out[r*dim], &weights[r*stride], stride, k, &values[0], dim, n)
		} else {
			attnMixAVX2(&out[r*dim], &weights[r*stride], stride, k, &values[0], dim, n)
		}
		r += k
	}
}

// rowsAtOnce returns how many of the remaining rows the attention kernels process in one call.
func rowsAtOnce(left int) int {
	if left >= queryRows && active == avx512 {
		return queryRows
	}
	return min(left, 4)
}
