//go:build !unix && !windows

package gguf

import (
	"io"
	"os"
)

// mapFile reads the file into memory on systems without memory mapping.
func mapFile(file *os.File, size int) ([]byte, func() error, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}
