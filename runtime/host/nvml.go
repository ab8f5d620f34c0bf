package host

import (
	"errors"
	"fmt"
)

// nvmlLibrary is the file name of NVML, the management library of NVIDIA's driver.
const nvmlLibrary = "libnvidia-ml.so.1"

// Results of NVML.
const (
	nvmlSuccess         = 0
	nvmlNotSupported    = 3
	nvmlNoPermission    = 4
	nvmlNotFound        = 6
	nvmlDriverNotLoaded = 9
	nvmlLost            = 15
	nvmlVersionMismatch = 18
)

// nvmlFunctions are the functions used from the library (nvml.h of NVIDIA's driver). Those that a driver lacks are nil.
type nvmlFunctions struct {
	start  func() int32
	count  func(n *uint32) int32
	handle func(index uint32, device *uintptr) int32
	total  func(device uintptr, millijoules *uint64) int32
	close  func() int32

	name        func(device uintptr, name *byte, size uint32) int32
	util        func(device uintptr, share *[2]uint32) int32
	memory      func(device uintptr, m *nvmlMemory) int32
	memoryV1    func(device uintptr, totalFreeUsed *[3]uint64) int32
	busWidth    func(device uintptr, bits *uint32) int32
	power       func(device uintptr, milliwatts *uint32) int32
	limit       func(device uintptr, milliwatts *uint32) int32
	clock       func(device uintptr, kind uint32, mhz *uint32) int32
	maxClock    func(device uintptr, kind uint32, mhz *uint32) int32
	reasons     func(device uintptr, bits *uint64) int32
	temperature func(device uintptr, sensor uint32, celsius *uint32) int32
	fields      func(device uintptr, n int32, values *nvmlField) int32
	pcie        func(device uintptr, counter uint32, kilobytes *uint32) int32
	processes   func(device uintptr, n *uint32, list *nvmlProcess) int32 // that compute
	graphics    func(device uintptr, n *uint32, list *nvmlProcess) int32
	usage       func(device uintptr, list *nvmlUsage, n *uint32, after uint64) int32

	mig       func(device uintptr, now, pending *uint32) int32
	migCount  func(device uintptr, n *uint32) int32
	migHandle func(device uintptr, index uint32, instance *uintptr) int32

	gpmSupport func(device uintptr, s *[2]uint32) int32
	gpmAlloc   func(sample *uintptr) int32
	gpmGet     func(device, sample uintptr) int32
	gpmFree    func(sample uintptr) int32
	gpmMetrics func(m *nvmlMetrics) int32
}

// names returns the names of the functions in the library, those that a newer one replaced last.
func (f *nvmlFunctions) names() map[any][]string {
	return map[any][]string{
		&f.start: {"nvmlInit_v2"}, &f.count: {"nvmlDeviceGetCount_v2"}, &f.handle: {"nvmlDeviceGetHandleByIndex_v2"},
		&f.total: {"nvmlDeviceGetTotalEnergyConsumption"}, &f.close: {"nvmlShutdown"},
		&f.name: {"nvmlDeviceGetName"}, &f.util: {"nvmlDeviceGetUtilizationRates"},
		&f.memory: {"nvmlDeviceGetMemoryInfo_v2"}, &f.memoryV1: {"nvmlDeviceGetMemoryInfo"}, &f.busWidth: {"nvmlDeviceGetMemoryBusWidth"},
		&f.power: {"nvmlDeviceGetPowerUsage"}, &f.limit: {"nvmlDeviceGetEnforcedPowerLimit"},
		&f.clock: {"nvmlDeviceGetClockInfo"}, &f.maxClock: {"nvmlDeviceGetMaxClockInfo"},
		&f.reasons:     {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
		&f.temperature: {"nvmlDeviceGetTemperature"}, &f.fields: {"nvmlDeviceGetFieldValues"}, &f.pcie: {"nvmlDeviceGetPcieThroughput"},
		&f.processes: {"nvmlDeviceGetComputeRunningProcesses_v3"}, &f.graphics: {"nvmlDeviceGetGraphicsRunningProcesses_v3"}, &f.usage: {"nvmlDeviceGetProcessUtilization"},
		&f.mig: {"nvmlDeviceGetMigMode"}, &f.migCount: {"nvmlDeviceGetMaxMigDeviceCount"}, &f.migHandle: {"nvmlDeviceGetMigDeviceHandleByIndex"},
		&f.gpmSupport: {"nvmlGpmQueryDeviceSupport"}, &f.gpmAlloc: {"nvmlGpmSampleAlloc"}, &f.gpmGet: {"nvmlGpmSampleGet"},
		&f.gpmFree: {"nvmlGpmSampleFree"}, &f.gpmMetrics: {"nvmlGpmMetricsGet"},
	}
}

// usable reports whether the functions are there without which nothing can be read.
func (f *nvmlFunctions) usable() bool {
	return f.start != nil && f.count != nil && f.handle != nil && f.close != nil
}

// Structures of nvml.h. Go pads them as C does on 64-bit systems.
type (
	nvmlMemory struct {
		version            uint32
		total, reserved, _ uint64 // the last: free
		used               uint64
	}
	nvmlField struct {
		id, scope uint32
		_         [2]int64 // time, latency
		kind      uint32
		result    int32
		value     uint64
	}
	nvmlProcess struct {
		pid    uint32
		memory uint64
		_      [2]uint32 // instances in MIG mode
	}
	nvmlUsage struct {
		pid uint32
		at  uint64
		sm  uint32
		_   [3]uint32 // memory, encoder, decoder
	}
	nvmlMetric struct {
		id     uint32
		result int32
		value  float64
		_      [3]uintptr // names
	}
	// nvmlMetrics has more entries than any header: the library touches only n of them.
	nvmlMetrics struct {
		version, n uint32
		samples    [2]uintptr
		metrics    [512]nvmlMetric
	}
)

const nvmlMemoryVersion = 40 | 2<<24 // size of nvmlMemory, version 2

// errNVMLVersion is the error if the driver was updated since the library was loaded, until the program is started again.
var errNVMLVersion = errors.New("NVML: the library and the loaded driver have different versions")

// nvmlError describes a result of NVML.
func nvmlError(result int32) error {
	switch result {
	case nvmlDriverNotLoaded:
		return fmt.Errorf("NVML: driver not loaded")
	case nvmlNoPermission:
		return fmt.Errorf("NVML: not permitted")
	case nvmlLost:
		return fmt.Errorf("NVML: the GPU is lost")
	case nvmlVersionMismatch:
		return errNVMLVersion
	}
	return fmt.Errorf("NVML: error %d", result)
}
