// Package gguf reads and writes model files in the GGUF format, versions 2 and 3, little-endian.
//
// A file is used in place, memory-mapped or embedded in the program: [File.Data] is a slice of it. Everything in the
// header is validated against the size of the file before it is used, so a damaged file causes an error, but neither a
// panic nor large allocations.
package gguf

import (
	"fmt"
	"os"
	"syscall"
)

// DefaultAlignment is the alignment of tensor data, in bytes, without the key general.alignment.
const DefaultAlignment = 32

// File is an open GGUF file. It is safe for concurrent use until Close.
type File struct {
	// Path is the name that the file was opened with, empty after Parse.
	Path string
	// Version of the format, 2 or 3.
	Version uint32
	// Alignment of tensor data in bytes, a power of two.
	Alignment uint64
	// Metadata holds the key-value pairs.
	Metadata Metadata
	// Tensors in the order of the file.
	Tensors []Tensor

	data   []byte // the whole file
	start  uint64 // offset of tensor data in data
	byName map[string]int
	unmap  func() error
}

// Open maps the file into memory and reads its header. The mapping is read-only and shared: if another program
// truncates the open file, access ends this program, as with any mapping.
func Open(path string) (*File, error) {
	data, unmap, err := mapPath(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	f, err := parse(data)
	if err != nil {
		_ = unmap() // the error of parse is more useful
		return nil, fmt.Errorf("open model: %s %w", path, err)
	}
	f.Path, f.unmap = path, unmap
	return f, nil
}

// Parse reads a GGUF file in memory. It keeps data without copying it.
func Parse(data []byte) (*File, error) {
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("parse model: the data %w", err)
	}
	return f, nil
}

func mapPath(path string) ([]byte, func() error, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() == 0 {
		return nil, nil, fmt.Errorf("%s is empty", path)
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, nil, fmt.Errorf("%s is too large for this system: %d bytes", path, info.Size())
	}
	data, unmap, err := mapFile(file, int(info.Size()))
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", path, err)
	}
	return data, unmap, nil
}

// Close unmaps the file. The results of Data must not be used afterwards.
func (f *File) Close() error {
	unmap := f.unmap
	f.unmap, f.data = nil, nil
	if unmap == nil {
		return nil
	}
	if err := unmap(); err != nil {
		return fmt.Errorf("close model: %w", err)
	}
	return nil
}

// Size returns the size of the file in bytes.
func (f *File) Size() int { return len(f.data) }

// Tensor returns a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Data returns the stored tensor in place; it must not be written to. It is nil for a type of unknown layout and after
// Close. t must be of this file.
func (f *File) Data(t Tensor) []byte {
	if t.Bytes == 0 || f.data == nil {
		return nil
	}
	lo := f.start + t.Offset
	hi := lo + t.Bytes
	return f.data[lo:hi:hi]
}
