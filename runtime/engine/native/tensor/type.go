package tensor

import "fmt"

// Type is the storage type of a tensor, with ggml's numbering.
type Type uint32

// The storage types that the native engine supports. The numbers are ggml's (ggml.h, enum ggml_type).
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q8_0 Type = 8
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// layout describes how a type is stored: in blocks of elems values in bytes bytes.
type layout struct {
	name         string
	elems, bytes int
}

// layouts has an entry for each supported type; the others are zero.
var layouts = [...]layout{
	F32:  {"F32", 1, 4},
	F16:  {"F16", 1, 2},
	Q4_0: {"Q4_0", 32, 18},
	Q8_0: {"Q8_0", 32, 34},
	Q4_K: {"Q4_K", 256, 144},
	Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210},
	BF16: {"BF16", 1, 2},
}

// unsupported lists types without kernels, by name for error messages.
var unsupported = map[Type]string{
	3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// layout returns the layout of t, zero for an unsupported type.
func (t Type) layout() layout {
	if int(t) < len(layouts) {
		return layouts[t]
	}
	return layout{}
}

// Supported reports whether there are kernels for t.
func (t Type) Supported() bool { return t.layout().elems > 0 }

// BlockElems returns the number of values in one block of t, 0 for an unsupported type.
func (t Type) BlockElems() int { return t.layout().elems }

// BlockBytes returns the stored size of one block of t in bytes, 0 for an unsupported type.
func (t Type) BlockBytes() int { return t.layout().bytes }

// RowBytes returns the stored size of a row of cols values, which must be a multiple of BlockElems; 0 for an
// unsupported type.
func (t Type) RowBytes(cols int) int {
	l := t.layout()
	return cols / max(l.elems, 1) * l.bytes
}

// String returns ggml's name of the type, for example "Q8_0".
func (t Type) String() string {
	if l := t.layout(); l.elems > 0 {
		return l.name
	}
	if n, ok := unsupported[t]; ok {
		return n
	}
	return fmt.Sprintf("type %d", uint32(t))
}
