package gguf

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Tensor describes one tensor of a file.
type Tensor struct {
	Name string
	Type tensor.Type
	// Dims are the sizes in ggml's order: Dims[0] is the row length (the number of columns). There are 1 to 4, all
	// positive.
	Dims []uint64
	// Offset of the data from the start of the file's tensor data, in bytes.
	Offset uint64
	// Bytes is the stored size, 0 for a type of unknown layout.
	Bytes uint64
}

// Elements returns the number of values in the tensor.
func (t Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// measure computes Bytes and validates the sizes.
func (t *Tensor) measure() error {
	elems := uint64(1)
	for _, d := range t.Dims {
		hi, lo := bits.Mul64(elems, d)
		if d == 0 || hi != 0 || lo > 1<<62 {
			return fmt.Errorf("is damaged: tensor %s has the impossible size %d", clean.Quote(t.Name), t.Dims)
		}
		elems = lo
	}
	perBlock, size := blockLayout(t.Type)
	if perBlock == 0 {
		return nil
	}
	if t.Dims[0]%perBlock != 0 {
		return fmt.Errorf("is damaged: tensor %s has rows of %d values; %v stores blocks of %d", clean.Quote(t.Name), t.Dims[0], t.Type, perBlock)
	}
	hi, lo := bits.Mul64(elems/perBlock, size)
	if hi != 0 {
		return fmt.Errorf("is damaged: tensor %s has the impossible size %d", clean.Quote(t.Name), t.Dims)
	}
	t.Bytes = lo
	return nil
}

// otherLayouts are the block layouts, in values and bytes, of ggml types without kernels here. They are needed to check
// such tensors against the size of the file. Source: the blocks of ggml-common.h.
var otherLayouts = map[tensor.Type][2]uint64{
	3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 9: {32, 36}, // Q4_1, Q5_0, Q5_1, Q8_1
	10: {256, 84}, 11: {256, 110}, 15: {256, 292}, // Q2_K, Q3_K, Q8_K
	16: {256, 66}, 17: {256, 74}, 18: {256, 98}, 19: {256, 50}, // IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S
	20: {32, 18}, 21: {256, 110}, 22: {256, 82}, 23: {256, 136}, // IQ4_NL, IQ3_S, IQ2_S, IQ4_XS
	24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, // I8, I16, I32, I64, F64
	29: {256, 56}, 34: {256, 54}, 35: {256, 66}, 39: {32, 17}, // IQ1_M, TQ1_0, TQ2_0, MXFP4
}

// blockLayout returns the number of values and bytes in a block of type t; zeros if unknown.
func blockLayout(t tensor.Type) (elems, bytes uint64) {
	if t.Supported() {
		return uint64(t.BlockElems()), uint64(t.BlockBytes())
	}
	l := otherLayouts[t]
	return l[0], l[1]
}

// CheckTypes returns an error for the first tensor without kernels in the native engine.
func (f *File) CheckTypes() error {
	for _, t := range f.Tensors {
		if !t.Type.Supported() {
			return fmt.Errorf("check tensors: tensor %s has type %v, which the native engine cannot compute; supported: %s",
				clean.Quote(t.Name), t.Type, supportedTypes())
		}
	}
	return nil
}

func supportedTypes() string {
	var names []string
	for t := range tensor.Type(64) {
		if t.Supported() {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, ", ")
}
