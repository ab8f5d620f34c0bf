package host

import "fmt"

// nvml reads the energy counters of NVIDIA GPUs through the driver's library, without starting a program. The counters
// exist since Volta; they count mJ since the driver was loaded.
type nvml struct {
	devices []uintptr
	began   []uint64 // counter of each device at the start, in mJ
	total   func(device uintptr, millijoules *uint64) int32
	close   func() int32
}

// gpuEnergy starts to count the energy of all NVIDIA GPUs. If that is not possible, it returns nil and the reason.
func gpuEnergy(library string) (*nvml, string) {
	lib, err := loadNVML(library)
	if err != nil || !lib.usable() {
		return nil, "no NVML"
	}
	return countGPUs(lib)
}

// countGPUs starts to count with the functions of a library.
func countGPUs(lib *nvmlFunctions) (*nvml, string) {
	if result := lib.start(); result != nvmlSuccess {
		return nil, fmt.Sprintf("NVML: error %d", result)
	}
	g := &nvml{total: lib.total, close: lib.close}
	var n uint32
	result := lib.count(&n)
	for i := uint32(0); result == nvmlSuccess && i < min(n, maxGPUs); i++ {
		var device uintptr
		var began uint64
		if result = lib.handle(i, &device); result == nvmlSuccess {
			if result = nvmlNotSupported; lib.total != nil {
				result = lib.total(device, &began)
			}
		}
		g.devices, g.began = append(g.devices, device), append(g.began, began)
	}
	switch {
	case result == nvmlNotSupported: // a sum that lacks a GPU would be wrong
		g.close()
		return nil, "NVML: a GPU without an energy counter"
	case result != nvmlSuccess:
		g.close()
		return nil, fmt.Sprintf("NVML: error %d", result)
	case len(g.devices) == 0:
		g.close()
		return nil, "NVML: no GPU"
	}
	return g, ""
}

// stop ends the count and returns the energy in J.
func (g *nvml) stop() (joules float64, ok bool) {
	defer g.close()
	for i, device := range g.devices {
		var now uint64
		if g.total(device, &now) != nvmlSuccess || now < g.began[i] { // the driver was reloaded
			return 0, false
		}
		joules += float64(now-g.began[i]) / 1e3
	}
	return joules, true
}
