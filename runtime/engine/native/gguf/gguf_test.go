package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// sample returns a file with a value of every type and three tensors.
func sample(t testing.TB, version uint32) []byte {
	t.Helper()
	w := NewWriter(version)
	w.Set("general.alignment", uint32(64)).Set("s", "text").Set("empty", "").Set("yes", true).Set("no", false)
	w.Set("u8", uint8(200)).Set("i8", int8(-3)).Set("u16", uint16(60000)).Set("i16", int16(-300))
	w.Set("u32", uint32(4e9)).Set("i32", int32(-4)).Set("u64", uint64(math.MaxUint64)).Set("i64", int64(-5))
	w.Set("f32", float32(0.5)).Set("f64", 0.25)
	w.Set("strings", []string{"a", "", "ccc"}).Set("i32s", []int32{1, -2}).Set("u64s", []uint64{1, math.MaxUint64})
	w.Set("f32s", []float32{1.5, -2}).Set("f64s", []float64{3}).Set("u8s", []uint8{255}).Set("none", []int32{})
	w.AddF32("vector", []uint64{3}, []float32{1, 2, 3})
	w.Add("blk.0.q", tensor.Q8_0, []uint64{64, 2}, bytes.Repeat([]byte{7}, 4*34))
	w.Add("blk.0.iq", tensor.Type(17), []uint64{256}, make([]byte, 74))
	data, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMetadata(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		f, err := Parse(sample(t, version))
		if err != nil {
			t.Fatal(err)
		}
		if f.Version != version || f.Alignment != 64 || len(f.Metadata.Keys()) != 22 {
			t.Errorf("version %d, alignment %d, %d pairs", f.Version, f.Alignment, len(f.Metadata.Keys()))
		}
		m := f.Metadata
		check(t, m.String, "s", "text")
		check(t, m.String, "empty", "")
		check(t, m.Bool, "yes", true)
		check(t, m.Bool, "no", false)
		check(t, m.Uint, "u8", 200)
		check(t, m.Uint, "u16", 60000)
		check(t, m.Uint, "u32", 4e9)
		check(t, m.Uint, "u64", math.MaxUint64)
		check(t, m.Float, "f32", 0.5)
		check(t, m.Float, "f64", 0.25)
		checkSlice(t, m.Strings, "strings", []string{"a", "", "ccc"})
		checkSlice(t, m.Ints, "i32s", []int64{1, -2})
		checkSlice(t, m.Ints, "u8s", []int64{255})
		checkSlice(t, m.Ints, "none", nil)
		checkSlice(t, m.Floats, "f32s", []float32{1.5, -2})
		checkSlice(t, m.Floats, "f64s", []float32{3})
	}
}

func check[T comparable](t *testing.T, get func(string) (T, error), key string, want T) {
	t.Helper()
	if got, err := get(key); err != nil || got != want {
		t.Errorf("%s = %v, %v; want %v", key, got, err, want)
	}
}

func checkSlice[T comparable](t *testing.T, get func(string) ([]T, error), key string, want []T) {
	t.Helper()
	if got, err := get(key); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s = %v, %v; want %v", key, got, err, want)
	}
}

func TestMetadataErrors(t *testing.T) {
	f, err := Parse(sample(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	m := f.Metadata
	if _, err := m.Uint("absent"); !errors.Is(err, ErrMissing) || err.Error() != "read metadata: absent is not in the file" {
		t.Errorf("absent key: %v", err)
	}
	if n, err := OrDefault(m.Uint, "absent", 7); n != 7 || err != nil {
		t.Errorf("default: %d, %v", n, err)
	}
	wrong := map[string]func(string) error{
		"s":       func(k string) error { _, err := OrDefault(m.Uint, k, 7); return err },
		"u32":     func(k string) error { _, err := m.String(k); return err },
		"strings": func(k string) error { _, err := m.Ints(k); return err },
		"f32":     func(k string) error { _, err := m.Bool(k); return err },
		"i32":     func(k string) error { _, err := m.Uint(k); return err },
		"u64s":    func(k string) error { _, err := m.Ints(k); return err },
		"i32s":    func(k string) error { _, err := m.Floats(k); return err },
		"yes":     func(k string) error { _, err := m.Float(k); return err },
		"f64s":    func(k string) error { _, err := m.Strings(k); return err },
	}
	for key, get := range wrong {
		if err := get(key); err == nil || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), key) {
			t.Errorf("wrong type of %s: %v", key, err)
		}
	}
}

func TestTensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, sample(t, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := f.Tensor("vector")
	if !ok || v.Elements() != 3 || v.Bytes != 12 {
		t.Fatalf("vector: %+v", v)
	}
	if data := f.Data(v); math.Float32frombits(binary.LittleEndian.Uint32(data[8:])) != 3 || cap(data) != 12 {
		t.Errorf("data of vector: %v", data)
	}
	q, _ := f.Tensor("blk.0.q")
	if data := f.Data(q); len(data) != 4*34 || data[0] != 7 || data[135] != 7 || q.Offset != 64 {
		t.Errorf("data of blk.0.q: %+v %v", q, data)
	}
	want := `check tensors: tensor "blk.0.iq" has type IQ2_XS, which the native engine cannot compute; supported: F32, F16, Q4_0, Q8_0, Q4_K, Q5_K, Q6_K, BF16`
	if err := f.CheckTypes(); err == nil || err.Error() != want {
		t.Errorf("CheckTypes: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if f.Data(v) != nil || f.Close() != nil {
		t.Error("a closed file has data or does not close twice")
	}
}

func TestUnknownTensorType(t *testing.T) {
	data, err := NewWriter(3).Add("new", tensor.Type(900), []uint64{5}, []byte{1, 2}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if f.Data(f.Tensors[0]) != nil || f.CheckTypes() == nil || !strings.Contains(f.CheckTypes().Error(), "tensor \"new\" has type type 900") {
		t.Errorf("unknown type: %v", f.CheckTypes())
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ content, want string }{
		"text.gguf":  {"hello, this is no model", "is not a GGUF file"},
		"short.gguf": {"GGUF", "is not a GGUF file"},
		"empty.gguf": {"", "is empty"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || err.Error() != "open model: "+path+" "+c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
}

// header returns a file header with the given counts, followed by rest.
func header(version uint32, tensors, pairs uint64, rest ...any) []byte {
	b := append([]byte("GGUF"), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[4:], version)
	for _, v := range append([]any{tensors, pairs}, rest...) {
		if s, ok := v.(string); ok {
			b = appendString(b, s)
			continue
		}
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

func TestDamagedFiles(t *testing.T) {
	pad := make([]byte, 256)
	u8, str, arr := uint32(kindUint8), uint32(kindString), uint32(kindArray)
	one := func(dims ...uint64) []any { // the header of one tensor "t" of type F32
		return []any{"t", uint32(len(dims)), dims, uint32(0)}
	}
	tensorFile := func(offset uint64, dims ...uint64) []byte {
		return header(3, 1, 0, append(one(dims...), offset, pad)...)
	}
	cases := map[string]struct {
		data []byte
		want string
	}{
		"big-endian":       {header(3<<24, 0, 0), "is a big-endian GGUF file"},
		"version 1":        {header(1, 0, 0), "has GGUF version 1"},
		"version 4":        {header(4, 0, 0), "has GGUF version 4"},
		"head only":        {header(3, 0, 0)[:20], "is truncated: metadata count"},
		"absurd tensors":   {header(3, 1<<60, 0, pad), "it declares 1152921504606846976 tensors"},
		"absurd pairs":     {header(3, 0, math.MaxUint64, pad), "metadata pairs and has"},
		"absurd string":    {header(3, 0, 1, uint64(1<<63), pad), "is truncated: metadata key"},
		"absurd array":     {header(3, 0, 1, "k", arr, uint32(kindInt64), uint64(1<<61), pad), `values in "k"`},
		"absurd strings":   {header(3, 0, 1, "k", arr, str, uint64(1<<61), pad), `strings in "k"`},
		"absurd arrays":    {header(3, 0, 1, "k", arr, arr, uint64(1<<61), pad), `arrays in "k"`},
		"string too long":  {header(3, 0, 1, "k", arr, str, uint64(1), uint64(900), pad), `is truncated: "k"`},
		"unknown type":     {header(3, 0, 1, "k", uint32(13), pad), `"k" has the unknown type 13`},
		"unknown element":  {header(3, 0, 1, "k", arr, uint32(99), pad), `"k" is an array of the unknown type 99`},
		"deep arrays":      {header(3, 0, 1, "k", arr, arr, uint64(1), arr, uint64(1), arr, uint64(1), arr, uint64(1), pad), "nests arrays"},
		"duplicate key":    {header(3, 0, 2, "k", u8, u8b(1), "k", u8, u8b(1), pad), `key "k" stands there twice`},
		"alignment 0":      {header(3, 0, 1, "general.alignment", u8, u8b(0), pad), "alignment of 0 bytes"},
		"alignment 48":     {header(3, 0, 1, "general.alignment", u8, u8b(48), pad), "alignment of 48 bytes"},
		"alignment string": {header(3, 0, 1, "general.alignment", str, "x", pad), "general.alignment is string"},
		"duplicate tensor": {header(3, 2, 0, append(append(one(1), uint64(0)), append(one(1), uint64(0), pad)...)...), `tensor "t" stands there twice`},
		"five dimensions":  {tensorFile(0, 1, 1, 1, 1, 1), "5 dimensions"},
		"empty dimension":  {tensorFile(0, 4, 0), "impossible size"},
		"overflowing size": {tensorFile(0, 1<<40, 1<<40), "impossible size"},
		"beyond the end":   {tensorFile(0, 1<<20), `tensor "t" needs 4194304 bytes`},
		"offset beyond":    {tensorFile(1<<40, 1), "from byte 1099511627776 on"},
		"offset overflow":  {tensorFile(math.MaxUint64&^31, 1), "is truncated or damaged"},
		"misaligned":       {tensorFile(4, 1), "not aligned to 32 bytes"},
		"ragged blocks":    {header(3, 1, 0, "t", uint32(1), uint64(33), uint32(tensor.Q8_0), uint64(0), pad), "rows of 33 values"},
	}
	for name, c := range cases {
		_, err := Parse(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "parse model: the data ") {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func u8b(n uint8) []byte { return []byte{n} }

// TestTruncated truncates a file at every byte: always an error, never a panic.
func TestTruncated(t *testing.T) {
	data := sample(t, 3)
	for n := range len(data) {
		if _, err := Parse(data[:n:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(data))
		}
	}
}

// TestCopy expects a copy to be the same file, and one without a key to lack that.
func TestCopy(t *testing.T) {
	whole := sample(t, 3)
	f, err := Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := NewWriter(3).Copy(f, nil).Bytes(); err != nil || !bytes.Equal(data, whole) {
		t.Errorf("a copy has %d bytes, %v; want the %d of the file", len(data), err, len(whole))
	}
	data, err := NewWriter(3).Copy(f, map[string]any{"strings": nil}).Set("strings", "s").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if f, err = Parse(data); err != nil || len(f.Metadata.Keys()) != 22 {
		t.Fatal(err)
	}
	check(t, f.Metadata.String, "strings", "s")
	checkSlice(t, f.Metadata.Ints, "i32s", []int64{1, -2})
}

func TestWriterErrors(t *testing.T) {
	for name, w := range map[string]*Writer{
		"version 1":    NewWriter(1),
		"Go type":      NewWriter(3).Set("k", 1),
		"alignment":    NewWriter(3).Set("general.alignment", uint32(3)),
		"tensor":       NewWriter(3).AddF32("t", []uint64{2}, []float32{1}),
		"tensor shape": NewWriter(3).Add("t", tensor.Q8_0, []uint64{2}, nil),
	} {
		if _, err := w.Bytes(); err == nil || !strings.HasPrefix(err.Error(), "write model: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample(f, 2))
	f.Add(sample(f, 3))
	f.Add(header(3, 1, 1, "k", uint32(kindArray), uint32(kindArray), uint64(1), uint32(kindArray), uint64(0), make([]byte, 64)))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		for _, key := range file.Metadata.Keys() {
			file.Metadata.String(key)
			file.Metadata.Bool(key)
			file.Metadata.Uint(key)
			file.Metadata.Float(key)
			file.Metadata.Strings(key)
			file.Metadata.Ints(key)
			file.Metadata.Floats(key)
		}
		if m := file.Describe(); m.KVBytes < 0 || m.KVHeads < 0 {
			t.Errorf("%d bytes of KV cache per token, %d heads", m.KVBytes, m.KVHeads)
		}
		for _, tensor := range file.Tensors {
			if uint64(len(file.Data(tensor))) != tensor.Bytes {
				t.Errorf("tensor %q has %d bytes, expected %d", tensor.Name, len(file.Data(tensor)), tensor.Bytes)
			}
		}
	})
}
