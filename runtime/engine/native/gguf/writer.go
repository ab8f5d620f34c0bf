package gguf

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Writer collects metadata and tensors and writes them as a GGUF file. The first error is kept and returned by Write,
// Bytes and WriteFile.
type Writer struct {
	version   uint32
	alignment uint64
	pairs     int
	meta      []byte
	tensors   []Tensor
	data      [][]byte
	size      uint64 // bytes of tensor data so far
	err       error
}

// NewWriter starts a file of format version 2 or 3.
func NewWriter(version uint32) *Writer {
	w := &Writer{version: version, alignment: DefaultAlignment}
	if version != 2 && version != 3 {
		w.err = fmt.Errorf("version %d is neither 2 nor 3", version)
	}
	return w
}

// Set adds a pair. The value is a string, a bool, an integer or float of fixed size, or a slice of these.
// general.alignment is a uint32 and must be set before the first tensor is added.
func (w *Writer) Set(key string, v any) *Writer {
	raw, err := appendValue(appendString(nil, key), v)
	if err != nil {
		w.fail(fmt.Errorf("metadata %s: %w", key, err))
		return w
	}
	if key == "general.alignment" {
		n, ok := v.(uint32)
		if !ok || n == 0 || n&(n-1) != 0 || len(w.tensors) > 0 {
			w.fail(fmt.Errorf("alignment %v: expected a uint32 power of two before the first tensor", v))
			return w
		}
		w.alignment = uint64(n)
	}
	w.meta = append(w.meta, raw...)
	w.pairs++
	return w
}

// Copy adds the pairs of a file whose keys are not in except, and its tensors.
func (w *Writer) Copy(f *File, except map[string]any) *Writer {
	le := binary.LittleEndian
	w.alignment = f.Alignment
	for _, key := range f.Metadata.keys {
		if _, skipped := except[key]; skipped {
			continue
		}
		v := f.Metadata.values[key]
		w.meta = le.AppendUint32(appendString(w.meta, key), uint32(v.kind))
		switch v.kind {
		case kindString:
			w.meta = le.AppendUint64(w.meta, uint64(len(v.raw)))
		case kindArray:
			w.meta = le.AppendUint64(le.AppendUint32(w.meta, uint32(v.elem)), v.n)
		}
		w.meta = append(w.meta, v.raw...)
		w.pairs++
	}
	for _, t := range f.Tensors {
		w.Add(t.Name, t.Type, t.Dims, f.Data(t))
	}
	return w
}

// Add adds a tensor with sizes dims (columns first), stored as data, which the Writer keeps. If the layout of the type
// is known, the length of data must match.
func (w *Writer) Add(name string, t tensor.Type, dims []uint64, data []byte) *Writer {
	w.size = (w.size + w.alignment - 1) &^ (w.alignment - 1)
	d := Tensor{Name: name, Type: t, Dims: dims, Offset: w.size}
	if err := d.measure(); err != nil {
		w.fail(fmt.Errorf("tensor %s %w", name, err))
	} else if d.Bytes != 0 && d.Bytes != uint64(len(data)) {
		w.fail(fmt.Errorf("tensor %s of type %v and size %d takes %d bytes, not %d", name, t, dims, d.Bytes, len(data)))
	}
	w.tensors, w.data = append(w.tensors, d), append(w.data, data)
	w.size += uint64(len(data))
	return w
}

// AddF32 adds a tensor of type F32.
func (w *Writer) AddF32(name string, dims []uint64, values []float32) *Writer {
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		w.fail(err)
	}
	return w.Add(name, tensor.F32, dims, data)
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Write writes the file to dst.
func (w *Writer) Write(dst io.Writer) error {
	if w.err != nil {
		return fmt.Errorf("write model: %w", w.err)
	}
	out := bufio.NewWriter(dst) // keeps the first error
	head := w.header()
	_, _ = out.Write(head)
	_, _ = out.Write(make([]byte, -len(head)&int(w.alignment-1)))
	for i, data := range w.data {
		_, _ = out.Write(data)
		if i+1 < len(w.data) {
			_, _ = out.Write(make([]byte, -len(data)&int(w.alignment-1)))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	return nil
}

// Bytes returns the file.
func (w *Writer) Bytes() ([]byte, error) {
	var buf bytes.Buffer
	err := w.Write(&buf)
	return buf.Bytes(), err
}

// WriteFile writes the file to path.
func (w *Writer) WriteFile(path string) error {
	data, err := w.Bytes()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	return nil
}

func (w *Writer) header() []byte {
	b := append([]byte("GGUF"), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[4:], w.version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(w.pairs))
	b = append(b, w.meta...)
	for _, t := range w.tensors {
		b = appendString(b, t.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
		b = binary.LittleEndian.AppendUint64(b, t.Offset)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends the type and the value.
func appendValue(b []byte, v any) ([]byte, error) {
	k, array := kindOf(v)
	if k == kinds {
		return nil, fmt.Errorf("a value of Go type %T cannot be stored", v)
	}
	le := binary.LittleEndian
	if array {
		b = le.AppendUint32(b, uint32(kindArray))
	}
	b = le.AppendUint32(b, uint32(k))
	switch v := v.(type) {
	case string:
		return appendString(b, v), nil
	case []string:
		b = le.AppendUint64(b, uint64(len(v)))
		for _, s := range v {
			b = appendString(b, s)
		}
		return b, nil
	}
	if array {
		b = le.AppendUint64(b, uint64(binary.Size(v))/kindBytes[k])
	}
	return binary.Append(b, le, v)
}

// kindOf returns the stored type of a Go value, or of its elements; kinds if it cannot be stored.
func kindOf(v any) (k kind, array bool) {
	t := reflect.TypeOf(v)
	if array = t.Kind() == reflect.Slice; array {
		t = t.Elem()
	}
	k, ok := map[reflect.Kind]kind{
		reflect.Uint8: kindUint8, reflect.Int8: kindInt8, reflect.Uint16: kindUint16, reflect.Int16: kindInt16, reflect.Uint32: kindUint32,
		reflect.Int32: kindInt32, reflect.Float32: kindFloat32, reflect.Bool: kindBool, reflect.String: kindString, reflect.Uint64: kindUint64,
		reflect.Int64: kindInt64, reflect.Float64: kindFloat64,
	}[t.Kind()]
	if !ok {
		return kinds, false
	}
	return k, array
}
