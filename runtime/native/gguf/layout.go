package gguf

import "github.com/llmtop/llmtop/runtime/native/tensor"

// otherLayouts are the blocks, in values and in bytes, of ggml's types that have no kernels here.
// They are needed to check such tensors against the size of the file.
// Source: the blocks of ggml-common.h.
var otherLayouts = map[tensor.Type][2]uint64{
	3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 9: {32, 36}, // Q4_1, Q5_0, Q5_1, Q8_1
	10: {256, 84}, 11: {256, 110}, 15: {256, 292}, // Q2_K, Q3_K, Q8_K
	16: {256, 66}, 17: {256, 74}, 18: {256, 98}, 19: {256, 50}, // IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S
	20: {32, 18}, 21: {256, 110}, 22: {256, 82}, 23: {256, 136}, // IQ4_NL, IQ3_S, IQ2_S, IQ4_XS
	24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, // I8, I16, I32, I64, F64
	29: {256, 56}, 34: {256, 54}, 35: {256, 66}, 39: {32, 17}, // IQ1_M, TQ1_0, TQ2_0, MXFP4
}

// blockLayout is the number of values and of bytes in a block of type t, zeros when not known.
func blockLayout(t tensor.Type) (elems, bytes uint64) {
	if t.Supported() {
		return uint64(t.BlockElems()), uint64(t.BlockBytes())
	}
	l := otherLayouts[t]
	return l[0], l[1]
}
