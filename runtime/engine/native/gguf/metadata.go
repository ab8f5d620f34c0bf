package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"
)

// ErrMissing is wrapped by the error of a getter if the key is not in the file. A value of another type is a different
// error.
var ErrMissing = errors.New("not in the file")

// kind is the type of a value, numbered as in the format.
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	kinds // the number of kinds
)

var (
	kindNames = [kinds]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}
	kindBytes = [kinds]uint64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8} // 0: variable size
)

func (k kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("type %d", uint32(k))
}

// value is a validated metadata value, decoded on access.
type value struct {
	kind kind
	elem kind   // element type of an array
	n    uint64 // number of elements of an array
	raw  []byte // encoded value, without the type, a string's length or an array's header
}

func (v value) String() string {
	if v.kind == kindArray {
		return fmt.Sprintf("array of %d %v", v.n, v.elem)
	}
	return v.kind.String()
}

// Metadata holds the key-value pairs of a file. Its getters return copies, valid after Close. Their error wraps
// [ErrMissing] if the key is absent, and names both types if the value has another type.
type Metadata struct {
	keys   []string
	values map[string]value
}

// Keys returns the keys in file order.
func (m Metadata) Keys() []string { return m.keys }

// Has reports whether the key exists, with any type.
func (m Metadata) Has(key string) bool { _, ok := m.values[key]; return ok }

// find returns the value of key if ok accepts it.
func (m Metadata) find(key, want string, ok func(value) bool) (value, error) {
	v, there := m.values[key]
	if !there {
		return value{}, fmt.Errorf("read metadata: %s is %w", key, ErrMissing)
	}
	if !ok(v) {
		return value{}, fmt.Errorf("read metadata: %s is %v, expected %s", key, v, want)
	}
	return v, nil
}

// String returns the value of a string key.
func (m Metadata) String(key string) (string, error) {
	v, err := m.find(key, "string", func(v value) bool { return v.kind == kindString })
	return string(v.raw), err
}

// Bool returns the value of a bool key.
func (m Metadata) Bool(key string) (bool, error) {
	v, err := m.find(key, "bool", func(v value) bool { return v.kind == kindBool })
	return err == nil && v.raw[0] != 0, err
}

// Uint returns the value of a key of any integer type; a negative value is an error.
func (m Metadata) Uint(key string) (uint64, error) {
	v, err := m.find(key, "an integer", func(v value) bool { return isInt(v.kind) })
	if err != nil {
		return 0, err
	}
	n := decodeInt(v.kind, v.raw)
	if n < 0 && v.kind != kindUint64 {
		return 0, fmt.Errorf("read metadata: %s is %d, expected no negative number", key, n)
	}
	return uint64(n), nil
}

// Float returns the value of a key of either floating-point type.
func (m Metadata) Float(key string) (float64, error) {
	v, err := m.find(key, "a float", func(v value) bool { return isFloat(v.kind) })
	if err != nil {
		return 0, err
	}
	return decodeFloat(v.kind, v.raw), nil
}

// Text returns the value of any key as text: of an array its type and length, of a missing key nothing.
func (m Metadata) Text(key string) string {
	v, ok := m.values[key]
	switch {
	case !ok:
		return ""
	case v.kind == kindString:
		return string(v.raw)
	case v.kind == kindBool:
		return strconv.FormatBool(v.raw[0] != 0)
	case v.kind == kindUint64:
		return strconv.FormatUint(uint64(decodeInt(v.kind, v.raw)), 10)
	case isInt(v.kind):
		return strconv.FormatInt(decodeInt(v.kind, v.raw), 10)
	case isFloat(v.kind):
		return strconv.FormatFloat(decodeFloat(v.kind, v.raw), 'g', -1, 64)
	}
	return v.String()
}

// Strings returns the value of an array of strings. The strings share one allocation.
func (m Metadata) Strings(key string) ([]string, error) {
	v, err := m.find(key, "array of string", func(v value) bool { return v.kind == kindArray && v.elem == kindString })
	if err != nil {
		return nil, err
	}
	all, out := string(v.raw), make([]string, v.n)
	for i := range out {
		n := binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(all), 8))
		out[i], all = all[8:8+n], all[8+n:]
	}
	return out, nil
}

// Ints returns the value of an array of any integer type. A uint64 beyond the range of int64 is an error.
func (m Metadata) Ints(key string) ([]int64, error) {
	v, err := m.find(key, "array of integers", func(v value) bool { return v.kind == kindArray && isInt(v.elem) })
	if err != nil {
		return nil, err
	}
	size, out := kindBytes[v.elem], make([]int64, v.n)
	for i := range out {
		out[i] = decodeInt(v.elem, v.raw[uint64(i)*size:])
		if out[i] < 0 && v.elem == kindUint64 {
			return nil, fmt.Errorf("read metadata: element %d of %s is too large: %d", i, key, uint64(out[i]))
		}
	}
	return out, nil
}

// Floats returns the value of an array of either floating-point type.
func (m Metadata) Floats(key string) ([]float32, error) {
	v, err := m.find(key, "array of floats", func(v value) bool { return v.kind == kindArray && isFloat(v.elem) })
	if err != nil {
		return nil, err
	}
	size, out := kindBytes[v.elem], make([]float32, v.n)
	for i := range out {
		out[i] = float32(decodeFloat(v.elem, v.raw[uint64(i)*size:]))
	}
	return out, nil
}

// OrDefault returns def for a missing key, otherwise the result of the getter:
//
//	rank, err := gguf.OrDefault(m.Uint, "llama.expert_count", 0)
func OrDefault[T any](get func(key string) (T, error), key string, def T) (T, error) {
	v, err := get(key)
	if errors.Is(err, ErrMissing) {
		return def, nil
	}
	return v, err
}

func isFloat(k kind) bool { return k == kindFloat32 || k == kindFloat64 }

func isInt(k kind) bool {
	return k < kinds && kindBytes[k] != 0 && k != kindBool && !isFloat(k)
}

// decodeInt reads an integer of kind k; a uint64 keeps its bits.
func decodeInt(k kind, b []byte) int64 {
	switch k {
	case kindUint8:
		return int64(b[0])
	case kindInt8:
		return int64(int8(b[0]))
	case kindUint16:
		return int64(binary.LittleEndian.Uint16(b))
	case kindInt16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case kindUint32:
		return int64(binary.LittleEndian.Uint32(b))
	case kindInt32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	default:
		return int64(binary.LittleEndian.Uint64(b))
	}
}

func decodeFloat(k kind, b []byte) float64 {
	if k == kindFloat32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
