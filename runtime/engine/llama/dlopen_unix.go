//go:build !nollama && (linux || darwin) && (amd64 || arm64)

package llama

import "github.com/ebitengine/purego"

// dlopen loads a shared library. Its run path finds the libraries that it needs in the same folder.
func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// dlsym returns the address of a function, or an error if the library does not export it.
func dlsym(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }
