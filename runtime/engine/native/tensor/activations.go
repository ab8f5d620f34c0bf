package tensor

import "fmt"

// Form is a set of formats of activations, as needed by different types of weights.
type Form uint8

// The formats of activations.
const (
	FormF32 Form = 1 << iota // float32, for F32, F16 and BF16 weights
	FormQ80                  // 8-bit blocks of 32 (ggml's block_q8_0), for quantised weights
)

// Form returns the format of activations for weights of type t; 0 for an unsupported type.
func (t Type) Form() Form {
	switch t {
	case F32, F16, BF16:
		return FormF32
	case Q8_0, Q4_0, Q4_K, Q5_K, Q6_K:
		return FormQ80
	}
	return 0
}

// blockElems is the number of values in one actBlock.
const blockElems = 32

// superElems is the number of values in a block of K-quants.
const superElems = 256

// actBlock holds 32 quantised activations with derived values for the kernels, in one cache line. Some kernels multiply
// q by weights+128 (an unsigned byte), so they start from -128·Σq; others by weights+32, and subtract 32·Σq.
type actBlock struct {
	q     [blockElems]int8
	scale float32  // value = q*scale
	sum   float32  // scale * Σq, for weights with a minimum
	off   int32    // -128 * Σq
	off0  int32    // -128 * Σq[:16]
	off1  int32    // -128 * Σq[16:]
	off32 [4]int16 // 32 * Σq of the even and of the odd pairs in q[:16] and in q[16:]
	_     int32
}

// Activations holds n vectors of cols values in the formats that the weights need. Its buffers are reused. Different
// goroutines may quantise different vectors at the same time.
type Activations struct {
	n, cols, blocks int
	forms           Form
	f32             []float32
	q80             []actBlock
}

// Resize sets the size to n vectors of cols values in each of the forms. It allocates only to grow. It panics if cols
// is not a multiple of the block size: 32 values for FormQ80.
func (a *Activations) Resize(n, cols int, forms Form) {
	if forms&FormQ80 != 0 && cols%blockElems != 0 {
		panic(fmt.Sprintf("tensor: %d columns are not a multiple of the block size", cols))
	}
	a.n, a.cols, a.blocks, a.forms = n, cols, cols/blockElems, forms
	if forms&FormF32 != 0 {
		a.f32 = grown(a.f32, n*cols)
	}
	if forms&FormQ80 != 0 {
		a.q80 = grown(a.q80, n*a.blocks)
	}
}

// grown returns s with length n, reallocated only if its capacity is too small.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Len returns the number of vectors.
func (a *Activations) Len() int { return a.n }

// Quantize stores x as vector i in each of the forms. Length and forms must match those of Resize.
func (a *Activations) Quantize(i int, x []float32, forms Form) {
	x = x[:a.cols]
	if forms&^a.forms != 0 {
		panic("tensor: form was not passed to Resize")
	}
	if forms&FormF32 != 0 {
		copy(a.f32[i*a.cols:(i+1)*a.cols], x)
	}
	if forms&FormQ80 != 0 {
		sets[active].quantizeQ80(a.q80[i*a.blocks:(i+1)*a.blocks], x)
	}
}
