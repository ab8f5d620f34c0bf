//go:build !nollama && (linux || darwin) && (amd64 || arm64)

package llama

import "github.com/ebitengine/purego"

// dlopen loads a shared library; those that it needs are found beside it by its own run path.
func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// dlsym is the address of a function, an error if the library does not export it.
func dlsym(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }
