package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Errors of parsing follow the name of the file: "x.gguf is truncated: …".
var errNotGGUF = errors.New("is not a GGUF file")

const (
	maxDims      = 4       // ggml's GGML_MAX_DIMS
	maxNesting   = 4       // nested arrays
	maxAlignment = 1 << 30 // far above any page size
	minPair      = 8 + 4 + 1
	minTensor    = 8 + 4 + 4 + 8 // name length, dimensions, type, offset; a scalar without a name
)

func parse(data []byte) (*File, error) {
	r := reader{data: data}
	f := &File{data: data, Alignment: DefaultAlignment}
	pairs, tensors := r.header(f)
	r.metadata(f, pairs)
	r.alignment(f)
	r.tensors(f, tensors)
	if r.err == nil {
		r.err = f.locate(r.pos)
	}
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

// reader reads the header. After the first error it returns zeros.
type reader struct {
	data []byte
	pos  uint64
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) left() uint64 { return uint64(len(r.data)) - r.pos }

// take returns the next n bytes, nil after an error.
func (r *reader) take(n uint64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.left() {
		r.fail("is truncated: %s at byte %d needs %d bytes and %d are left", what, r.pos, n, r.left())
		return nil
	}
	b := r.data[r.pos : r.pos+n]
	r.pos += n
	return b
}

func (r *reader) u32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) bytes(what string) []byte { return r.take(r.u64(what), what) }

// count checks that n items of at least size bytes each fit in the rest of the file.
func (r *reader) count(n, size uint64, what string) {
	if r.err == nil && n > r.left()/size {
		r.fail("is truncated or damaged: it declares %d %s and has %d bytes left", n, what, r.left())
	}
}

func (r *reader) header(f *File) (pairs, tensors uint64) {
	if len(r.data) < 8 || string(r.data[:4]) != "GGUF" {
		r.err = errNotGGUF
		return 0, 0
	}
	r.pos = 4
	f.Version = r.u32("version")
	switch {
	case f.Version&0xffff == 0 && f.Version != 0:
		r.fail("is a big-endian GGUF file, which is not supported")
	case f.Version < 2 || f.Version > 3:
		r.fail("has GGUF version %d; supported: 2 and 3", f.Version)
	}
	tensors = r.u64("tensor count")
	pairs = r.u64("metadata count")
	r.count(tensors, minTensor, "tensors")
	r.count(pairs, minPair, "metadata pairs")
	return pairs, tensors
}

func (r *reader) metadata(f *File, pairs uint64) {
	f.Metadata.values = map[string]value{}
	for range pairs {
		key := string(r.bytes("metadata key"))
		v := r.value(clean.Quote(key))
		if r.err != nil {
			return
		}
		if f.Metadata.Has(key) {
			r.fail("is damaged: metadata key %s stands there twice", clean.Quote(key))
			return
		}
		f.Metadata.keys = append(f.Metadata.keys, key)
		f.Metadata.values[key] = v
	}
}

// value reads the value of a metadata key, quoted for messages.
func (r *reader) value(key string) value {
	v := value{kind: kind(r.u32("type of a value"))}
	switch {
	case v.kind == kindString:
		v.raw = r.bytes(key)
	case v.kind == kindArray:
		v.elem = kind(r.u32(key))
		v.n = r.u64(key)
		lo := r.pos
		r.skipArray(key, v.elem, v.n, 1)
		v.raw = r.data[lo:r.pos]
	case v.kind < kinds:
		v.raw = r.take(kindBytes[v.kind], key)
	default:
		r.fail("is damaged: metadata key %s has the unknown %v", key, v.kind)
	}
	return v
}

// skipArray validates n elements and skips them.
func (r *reader) skipArray(key string, elem kind, n uint64, depth int) {
	switch {
	case elem >= kinds:
		r.fail("is damaged: metadata key %s is an array of the unknown %v", key, elem)
	case elem == kindString:
		r.count(n, 8, "strings in "+key)
		for i := uint64(0); i < n && r.err == nil; i++ {
			r.bytes(key)
		}
	case elem == kindArray:
		if depth == maxNesting {
			r.fail("is damaged: metadata key %s nests arrays more than %d deep", key, maxNesting)
		}
		r.count(n, 12, "arrays in "+key)
		for i := uint64(0); i < n && r.err == nil; i++ {
			k := kind(r.u32(key))
			r.skipArray(key, k, r.u64(key), depth+1)
		}
	default:
		r.count(n, kindBytes[elem], "values in "+key)
		r.take(n*kindBytes[elem], key)
	}
}

func (r *reader) alignment(f *File) {
	if r.err != nil {
		return
	}
	f.Alignment, r.err = OrDefault(f.Metadata.Uint, "general.alignment", DefaultAlignment)
	if r.err != nil {
		r.err = fmt.Errorf("is damaged: %w", r.err)
		return
	}
	if bits.OnesCount64(f.Alignment) != 1 || f.Alignment > maxAlignment {
		r.fail("is damaged: the alignment of %d bytes is no power of two up to %d", f.Alignment, maxAlignment)
	}
}

func (r *reader) tensors(f *File, n uint64) {
	r.count(n, minTensor, "tensors")
	if r.err != nil {
		return
	}
	f.byName = map[string]int{}
	for i := range int(n) {
		t := r.tensor()
		if r.err != nil {
			return
		}
		if _, ok := f.byName[t.Name]; ok {
			r.fail("is damaged: tensor %s stands there twice", clean.Quote(t.Name))
			return
		}
		f.byName[t.Name] = i
		f.Tensors = append(f.Tensors, t)
	}
}

func (r *reader) tensor() Tensor {
	t := Tensor{Name: string(r.bytes("tensor name"))}
	dims := r.u32("dimensions of a tensor")
	if dims > maxDims {
		r.fail("is damaged: tensor %s has %d dimensions; at most %d are possible", clean.Quote(t.Name), dims, maxDims)
		return t
	}
	if dims == 0 {
		t.Dims = []uint64{1}
	}
	for range dims {
		t.Dims = append(t.Dims, r.u64("size of a tensor"))
	}
	t.Type = tensor.Type(r.u32("type of a tensor"))
	t.Offset = r.u64("offset of a tensor")
	if r.err == nil {
		r.err = t.measure()
	}
	return t
}

// locate finds the tensor data after the header and checks that every tensor lies in it.
func (f *File) locate(header uint64) error {
	if len(f.Tensors) == 0 {
		return nil
	}
	size := uint64(len(f.data))
	f.start = (header + f.Alignment - 1) &^ (f.Alignment - 1)
	if f.start > size {
		return errors.New("is truncated: it ends before its tensors")
	}
	room := size - f.start
	for _, t := range f.Tensors {
		if t.Offset%f.Alignment != 0 {
			return fmt.Errorf("is damaged: tensor %s at offset %d is not aligned to %d bytes", clean.Quote(t.Name), t.Offset, f.Alignment)
		}
		if t.Offset > room || t.Bytes > room-t.Offset {
			return fmt.Errorf("is truncated or damaged: tensor %s needs %d bytes from byte %d on, of %d bytes of tensor data",
				clean.Quote(t.Name), t.Bytes, t.Offset, room)
		}
	}
	return nil
}
