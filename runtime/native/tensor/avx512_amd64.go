package tensor

//go:generate go -C asm run ./avx512 -out ../avx512_amd64.s

// The kernels in avx512_amd64.s. All lengths are at least one.

// pack* unpack 16 rows, stride bytes apart, of blocks times 32 columns. For K-quants blocks is a multiple of 8.
//
//go:noescape
func packQ80AVX512(panel *panel, base *byte, stride, blocks int)

//go:noescape
func packQ40AVX512(panel *panel, base *byte, stride, blocks int)

//go:noescape
func packQ4KAVX512(panel *panel, base *byte, stride, blocks int)

//go:noescape
func packQ5KAVX512(panel *panel, base *byte, stride, blocks int)

//go:noescape
func packQ6KAVX512(panel *panel, base *byte, stride, blocks int)

// gemm* multiply a panel by n vectors: the result for vector act + in[j]*actStride is written, or added when add
// is true, to the 16 values at dst + out[j]*dstStride, of which mask selects some. Strides are in bytes.
//
//go:noescape
func gemmAVX512(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

//go:noescape
func gemmMinAVX512(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)

//go:noescape
func gemmHalvesAVX512(panel *panel, blocks int, act *actBlock, actStride int, dst *float32, dstStride int, in, out *int32, n int, mask uint16, add bool)
