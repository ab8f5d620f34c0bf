// Package msgpack decodes MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) from untrusted senders.
// A list longer than the rest of the message allocates nothing, and depth and number of values are limited.
package msgpack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// Limits of one message.
const (
	maxDepth  = 16
	maxValues = 1 << 20 // about 32 bytes each
)

// ErrBounds means that a message is too deep or has too many values.
var ErrBounds = errors.New("message is too deep, or has too many values")

var errShort = errors.New("message ends in the middle of a value")

// Map holds the entries of a map with string keys; others are omitted.
type Map map[string]any

// Decode decodes a complete message: nil, bool, int64, uint64 (above math.MaxInt64), float64, string, []byte, []any or
// Map. An extension is its bytes.
func Decode(data []byte) (any, error) {
	d := decoder{data: data, left: maxValues}
	v, err := d.value(0)
	if err == nil && len(d.data) > 0 {
		err = fmt.Errorf("%d bytes after the end of the value", len(d.data))
	}
	if err != nil {
		return nil, fmt.Errorf("read MessagePack: %w", err)
	}
	return v, nil
}

// Number converts a value to a number; ok is false if it is not a number (f is 0) or not a plausible one.
func Number(v any) (f float64, ok bool) {
	switch n := v.(type) {
	case int64:
		f = float64(n)
	case uint64:
		f = float64(n)
	case float64:
		f = n
	default:
		return 0, false
	}
	return f, event.Plausible(f)
}

type decoder struct {
	data []byte
	left int // values
}

func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.data)) {
		return nil, errShort
	}
	out := d.data[:n:n]
	d.data = d.data[n:]
	return out, nil
}

// unsigned reads a big-endian number of the given size.
func (d *decoder) unsigned(bytes uint64) (uint64, error) {
	raw, err := d.take(bytes)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-bytes:], raw)
	return binary.BigEndian.Uint64(wide[:]), nil
}

func (d *decoder) value(depth int) (any, error) {
	if d.left--; d.left < 0 || depth > maxDepth {
		return nil, ErrBounds
	}
	head, err := d.take(1)
	if err != nil {
		return nil, err
	}
	switch b := head[0]; {
	case b < 0x80:
		return int64(b), nil
	case b < 0x90:
		return d.table(uint64(b&0x0f), depth)
	case b < 0xa0:
		return d.list(uint64(b&0x0f), depth)
	case b < 0xc0:
		return d.text(uint64(b & 0x1f))
	case b >= 0xe0:
		return int64(int8(b)), nil
	default:
		return d.typed(b, depth)
	}
}

// typed reads a value whose first byte is only its type.
func (d *decoder) typed(b byte, depth int) (any, error) {
	switch b {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return b == 0xc3, nil
	case 0xca:
		n, err := d.unsigned(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := d.unsigned(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := d.unsigned(1 << (b - 0xcc))
		if n > math.MaxInt64 {
			return n, err
		}
		return int64(n), err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := uint64(1) << (b - 0xd0)
		n, err := d.unsigned(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // extensions of a fixed size; the first byte is their type
		raw, err := d.take(1 + 1<<(b-0xd4))
		return raw, err
	}
	return d.sized(b, depth)
}

// sized reads a value whose size follows its first byte.
func (d *decoder) sized(b byte, depth int) (any, error) {
	sizes := map[byte]uint64{
		0xc4: 1, 0xc5: 2, 0xc6: 4, 0xc7: 1, 0xc8: 2, 0xc9: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
	}
	n, err := d.unsigned(sizes[b])
	if err != nil {
		return nil, err
	}
	switch b {
	case 0xc4, 0xc5, 0xc6:
		return d.take(n)
	case 0xc7, 0xc8, 0xc9:
		return d.take(n + 1)
	case 0xd9, 0xda, 0xdb:
		return d.text(n)
	case 0xdc, 0xdd:
		return d.list(n, depth)
	case 0xde, 0xdf:
		return d.table(n, depth)
	}
	return nil, fmt.Errorf("unknown type byte 0x%02x", b)
}

func (d *decoder) text(n uint64) (any, error) {
	raw, err := d.take(n)
	return string(raw), err
}

func (d *decoder) list(n uint64, depth int) (any, error) {
	if n > uint64(len(d.data)) {
		return nil, errShort
	}
	if n > uint64(d.left) {
		return nil, ErrBounds
	}
	out := make([]any, n)
	for i := range out {
		var err error
		if out[i], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *decoder) table(n uint64, depth int) (any, error) {
	if 2*n > uint64(len(d.data)) {
		return nil, errShort
	}
	out := Map{}
	for range n {
		key, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if name, ok := key.(string); ok {
			out[name] = v
		}
	}
	return out, nil
}
