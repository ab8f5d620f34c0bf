//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"errors"
	"unsafe"
)

// Offsets in struct ggml_tensor, in bytes. The first fields are stable: type, buffer, ne, nb.
const (
	tensorNE = 16 // int64[4]: number of elements in each dimension
	tensorNB = 48 // size_t[4]: stride in bytes in each dimension
)

// fakeTensor is the start of a struct ggml_tensor, with space after it.
type fakeTensor struct {
	kind, _ int32
	buffer  uintptr
	ne      [4]int64
	nb      [4]uintptr
	rest    [4096]byte
}

// measureTensor passes a made-up tensor to the library to find out which offsets it reads.
func (l *library) measureTensor() error {
	t := &fakeTensor{ne: [4]int64{3, 5, 7, 11}, nb: [4]uintptr{4, 1 << 8, 1 << 16, 1 << 24}} // of type 0, float32
	p := uintptr(unsafe.Pointer(t))
	l.nameAt = l.tensorName(p) - p
	if l.tensorRows(p) != 5*7*11 || l.tensorBytes(p) != 4+2*4+4<<8+6<<16+10<<24 || l.nameAt > 4096 {
		return errors.New("struct ggml_tensor is not that of a supported release")
	}
	return nil
}

// pointer converts an address in the library's memory, which Go does not move.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// at reads a value at an offset from an address.
func at[T any](address, offset uintptr) T { return *(*T)(pointer(address + offset)) }

// nameOf returns a tensor's name, at most 63 bytes long. It is valid as long as the tensor is.
func (l *library) nameOf(t uintptr) string {
	start := (*byte)(pointer(t + l.nameAt))
	n := 0
	for n < 63 && *(*byte)(unsafe.Add(unsafe.Pointer(start), n)) != 0 {
		n++
	}
	return unsafe.String(start, n)
}
