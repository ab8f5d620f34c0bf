package gguf

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps size > 0 bytes of file, read-only.
func mapFile(file *os.File, size int) ([]byte, func() error, error) {
	m, err := windows.CreateFileMapping(windows.Handle(file.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer windows.CloseHandle(m) // the view keeps the mapping alive
	addr, err := windows.MapViewOfFile(m, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, err
	}
	// addr is not Go memory; the indirect conversion avoids vet's warning about it.
	data := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size)
	return data, func() error { return windows.UnmapViewOfFile(addr) }, nil
}
