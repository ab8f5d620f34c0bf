package tensor

//go:generate go -C asm run ./avx2 -out ../avx2_amd64.s

// The kernels in avx2_amd64.s. All lengths must be at least one.

// pack* unpack 8 rows, stride bytes apart, of blocks times 32 columns, and prefetch as many bytes at next.
// For K-quants blocks is a multiple of 8.
//
//go:noescape
func packQ80AVX2(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ40AVX2(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ4KAVX2(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ5KAVX2(panel *panel, base *byte, stride, blocks int, next uintptr)

//go:noescape
func packQ6KAVX2(panel *panel, base *byte, stride, blocks int, next uintptr)

// gemm* multiply a panel by n vectors. The result for vector act + in[j]*actStride is written (added if add is set) to
// the 8 values at dst + out[j]*dstStride that mask selects. Strides are in bytes.
//
//go:noescape
func gemmAVX2(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

//go:noescape
func gemmMinAVX2(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

//go:noescape
func gemmHalvesAVX2(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

// gemmF32AVX2 and the following multiply up to 4 rows, stride bytes apart, with a multiple of 8 columns, by n vectors
// of float32. The results for vector x + in[j]*xStride are written to the rows values at dst + out[j]*dstStride.
// Strides are in bytes.
//
//go:noescape
func gemmF32AVX2(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)

//go:noescape
func gemmF16AVX2(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)

//go:noescape
func gemmBF16AVX2(base *byte, stride, rows, cols int, x *float32, xStride int, dst *float32, dstStride int, in, out *int32, n int)

//go:noescape
func quantizeQ80AVX2(dst *actBlock, x *float32, blocks int)

//go:noescape
func addToAVX2(y, x *float32, n int)

//go:noescape
func axpyAVX2(y *float32, a float32, x *float32, n int)

//go:noescape
func scaleToAVX2(dst, x *float32, s float32, n int)

//go:noescape
func scaleMulAVX2(dst, x, w *float32, s float32, n int)

//go:noescape
func rotateHalvesAVX2(x, y, cos, sin *float32, n int)

//go:noescape
func swiGLUAVX2(dst, gate, up *float32, n int)

//go:noescape
func dotAVX2(x, y *float32, n int) float32

//go:noescape
func expSumAVX2(x *float32, scale float32, n int) float32

// n must be a multiple of 8.
//
//go:noescape
func floatsToHalvesAVX2(dst *uint16, src *float32, n int)

// attnScoresAVX2 computes 1 to 4 rows; stride is in values.
//
//go:noescape
func attnScoresAVX2(scores *float32, stride int, q *float32, rows int, keys *uint16, dim, positions int)

// attnMixAVX2 computes 1 to 4 rows of dim values, a multiple of 8; stride is in values.
//
//go:noescape
func attnMixAVX2(out, weights *float32, stride, rows int, values *uint16, dim, n int)

// gemv* multiply tiles of 8 rows, stride bytes apart, of blocks of weights by one vector.
//
//go:noescape
func gemvQ80AVX2(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ40AVX2(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ4KAVX2(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ5KAVX2(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)

//go:noescape
func gemvQ6KAVX2(dst *float32, base *byte, stride, tiles, blocks int, act *actBlock)
