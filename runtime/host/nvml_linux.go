//go:build !nollama && (amd64 || arm64)

package host

import (
	"sync"

	"github.com/ebitengine/purego"
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
