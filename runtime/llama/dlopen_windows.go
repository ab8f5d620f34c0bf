//go:build !nollama && (amd64 || arm64)

package llama

import "golang.org/x/sys/windows"

// dlopen loads a library; those that it needs are looked for beside it first.
func dlopen(path string) (uintptr, error) {
	lib, err := windows.LoadLibraryEx(path, 0, windows.LOAD_WITH_ALTERED_SEARCH_PATH)
	return uintptr(lib), err
}

// dlsym is the address of a function, an error if the library does not export it.
func dlsym(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}
