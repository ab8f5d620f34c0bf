package tensor

//go:generate go -C asm run ./avx512 -out ../avx512_amd64.s

// The kernels in avx512_amd64.s. All lengths must be at least one.

// pack* unpack 16 rows, stride bytes apart, of blocks times 32 columns, and prefetch as many bytes at next.
// For K-quants blocks is a multiple of 8.
//
//go:noescape
func packQ80AVX512(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ40AVX512(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ4KAVX512(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ5KAVX512(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ6KAVX512(panel *panel, base *byte, stride, blocks int, next uintptr)

// gemm* multiply a panel by n vectors. The result for vector act + in[j]*actStride is written (added if add is set) to
// the 16 values at dst + out[j]*dstStride that mask selects. Strides are in bytes.
//
//go:noescape
func gemmAVX512(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

//go:noescape
func gemmMinAVX512(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

//go:noescape
func gemmHalvesAVX512(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

// gemmF32AVX512 and the following multiply up to 4 rows, stride bytes apart, by n vectors of float32. The results for
// vector x + in[j]*xStride are written to the rows values at dst + out[j]*dstStride. Strides are in bytes.
//
//go:noescape
func gemmF32AVX512(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)

//go:noescape
func gemmF16AVX512(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)

//go:noescape
func gemmBF16AVX512(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)

//go:noescape
func addToAVX512(y, x *float32, n int)

//go:noescape
func axpyAVX512(y *float32, a float32, x *float32, n int)

//go:noescape
func scaleToAVX512(dst, x *float32, s float32, n int)

//go:noescape
func scaleMulAVX512(dst, x, w *float32, s float32, n int)

//go:noescape
func rotateHalvesAVX512(x, y, cos, sin *float32, n int)

//go:noescape
func swiGLUAVX512(dst, gate, up *float32, n int)

//go:noescape
func dotAVX512(x, y *float32, n int) float32

//go:noescape
func expSumAVX512(x *float32, scale float32, n int) float32

//go:noescape
func floatsToHalvesAVX512(dst *uint16, src *float32, n int)

// attnScoresAVX512 computes 1, 2, 3, 4 or 8 rows; stride is in values.
//
//go:noescape
func attnScoresAVX512(scores *float32, stride int, q *float32, rows int, keys *uint16, dim, positions int)

// attnMixAVX512 computes 1, 2, 3, 4 or 8 rows of dim values, a multiple of 16; stride is in values.
//
//go:noescape
func attnMixAVX512(out, weights *float32, stride, rows int, values *uint16, dim, n int)

// gemv* multiply tiles of 16 rows, stride bytes apart, of blocks of weights by one vector.
//
//go:noescape
func gemvQ80AVX512(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ40AVX512(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ4KAVX512(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ5KAVX512(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ6KAVX512(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)
