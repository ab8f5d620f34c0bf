//go:build !nollama && (amd64 || arm64)

package host

import (
	"sync"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// loadedNVML caches libraries by path. They are never unloaded, because the driver's library may keep threads running.
var loadedNVML sync.Map

// loadNVML loads the driver's library, which exists where the driver is installed.
func loadNVML(path string) (*nvmlFunctions, error) {
	if lib, ok := loadedNVML.Load(path); ok {
		return lib.(*nvmlFunctions), nil
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	lib := new(nvmlFunctions)
	for f, names := range lib.names() {
		for _, name := range names {
			if address, err := purego.Dlsym(handle, name); err == nil {
				purego.RegisterFunc(f, address)
				break
			}
		}
	}
	loadedNVML.Store(path, lib)
	return lib, nil
}

// threadTime returns the CPU time of the calling thread, in ns.
func threadTime() uint64 { return cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) }
