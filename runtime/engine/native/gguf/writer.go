package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Writer collects metadata and tensors and writes them as a GGUF file. The first error is kept and returned by WriteTo,
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

// WriteTo writes the file to dst.
func (w *Writer) WriteTo(dst io.Writer) (int64, error) {
	if w.err != nil {
		return 0, fmt.Errorf("write model: %w", w.err)
	}
	head := w.header()
	out := counter{dst: dst}
	out.write(head)
	out.write(make([]byte, -len(head)&int(w.alignment-1)))
	for i, data := range w.data {
		out.write(data)
		if i+1 < len(w.data) {
			out.write(make([]byte, -len(data)&int(w.alignment-1)))
		}
	}
	if out.err != nil {
		return out.n, fmt.Errorf("write model: %w", out.err)
	}
	return out.n, nil
}

// Bytes returns the file.
func (w *Writer) Bytes() ([]byte, error) {
	var buf bytes.Buffer
	_, err := w.WriteTo(&buf)
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

// counter counts the bytes written, and stops at the first error.
type counter struct {
	dst io.Writer
	n   int64
	err error
}

func (c *counter) write(b []byte) {
	if c.err != nil || len(b) == 0 {
		return
	}
	n, err := c.dst.Write(b)
	c.n, c.err = c.n+int64(n), err
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
	switch v.(type) {
	case uint8, []uint8:
		k = kindUint8
	case int8, []int8:
		k = kindInt8
	case uint16, []uint16:
		k = kindUint16
	case int16, []int16:
		k = kindInt16
	case uint32, []uint32:
		k = kindUint32
	case int32, []int32:
		k = kindInt32
	case float32, []float32:
		k = kindFloat32
	case bool, []bool:
		k = kindBool
	case string, []string:
		k = kindString
	case uint64, []uint64:
		k = kindUint64
	case int64, []int64:
		k = kindInt64
	case float64, []float64:
		k = kindFloat64
	default:
		return kinds, false
	}
	switch v.(type) {
	case []uint8, []int8, []uint16, []int16, []uint32, []int32, []float32, []bool, []string, []uint64, []int64, []float64:
		array = true
	}
	return k, array
}
