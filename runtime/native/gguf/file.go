// Package gguf reads and writes model files in the GGUF format, versions 2 and 3, little-endian.
//
// A file is used where it lies, memory-mapped or embedded in the program: [File.Data] is a slice
// of it. Everything that the header says is checked against the size of the file before it is
// believed, so a damaged file costs an error and neither a panic nor memory.
package gguf

import (
	"fmt"
	"os"
)

// DefaultAlignment is the alignment of tensor data, in bytes, without the key general.alignment.
const DefaultAlignment = 32

// File is an open GGUF file. It is safe for concurrent use until Close.
type File struct {
	// Path is the name that the file was opened by, empty after Parse.
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
	start  uint64 // of tensor data in data
	byName map[string]int
	unmap  func() error
}

// Open maps the file into memory and reads its header. The mapping is read-only and shared; a file
// that is cut short by somebody else while it is open ends the program, as with any mapping.
func Open(path string) (*File, error) {
	data, unmap, err := mapPath(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	f, err := parse(data)
	if err != nil {
		_ = unmap() // the error of parse is the one to tell
		return nil, fmt.Errorf("open model: %s %w", path, err)
	}
	f.Path, f.unmap = path, unmap
	return f, nil
}

// Parse reads a GGUF file that is in memory already. It keeps data and does not copy it.
func Parse(data []byte) (*File, error) {
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("parse model: the data %w", err)
	}
	return f, nil
}

func mapPath(path string) ([]byte, func() error, error) {
	file, err := os.Open(path)
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

// Close unmaps the file. What Data returned must not be used after that.
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

// Size is the size of the whole file in bytes.
func (f *File) Size() int { return len(f.data) }

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Data is the stored tensor, in place and not to be written to; nil for a type of unknown layout
// and after Close. t must be of this file.
func (f *File) Data(t Tensor) []byte {
	if t.Bytes == 0 || f.data == nil {
		return nil
	}
	lo := f.start + t.Offset
	hi := lo + t.Bytes
	return f.data[lo:hi:hi]
}
