//go:build !nollama && (amd64 || arm64)

package host

import (
	"sync"

	"github.com/ebitengine/purego"
)

// loadedNVML keeps libraries by their paths. None is let go of: the driver's may keep threads.
var loadedNVML sync.Map

// loadNVML loads the driver's library, which is there where the driver is.
func loadNVML(path string) (*nvmlFunctions, error) {
	if lib, ok := loadedNVML.Load(path); ok {
		return lib.(*nvmlFunctions), nil
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	lib := new(nvmlFunctions)
	for name, f := range map[string]any{
		"nvmlInit_v2": &lib.start, "nvmlDeviceGetCount_v2": &lib.count, "nvmlDeviceGetHandleByIndex_v2": &lib.handle,
		"nvmlDeviceGetTotalEnergyConsumption": &lib.total, "nvmlShutdown": &lib.close,
	} {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(f, address)
	}
	loadedNVML.Store(path, lib)
	return lib, nil
}
