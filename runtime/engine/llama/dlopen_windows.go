//go:build !nollama && (amd64 || arm64)

package llama

import "golang.org/x/sys/windows"

// dlopen loads a library. The libraries that it needs are looked up in the same folder first.
func dlopen(path string) (uintptr, error) {
	lib, err := windows.LoadLibraryEx(path, 0, windows.LOAD_WITH_ALTERED_SEARCH_PATH)
	return uintptr(lib), err
}

// dlsym returns the address of a function, or an error if the library does not export it.
func dlsym(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}
