package host

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// nvidia reads NVIDIA GPUs with NVML.
type nvidia struct {
	lib     *nvmlFunctions
	devices []*nvmlDevice
	found   [256]nvmlProcess // of a GPU; reused

	// Of the goroutine that makes the slow calls (nvidia_slow.go).
	metrics nvmlMetrics    // of GPM; this and the list are reused
	used    [512]nvmlUsage // of a GPU
	stop    context.CancelFunc
	joined  sync.WaitGroup

	mu sync.Mutex // guards slowReadings of all devices
}

// nvmlDevice is the state of a GPU, or of an instance of one in MIG mode.
type nvmlDevice struct {
	handle  uintptr
	fixed   event.GPU // the readings that do not change, and those of every seldomEvery-th reading
	reads   int
	lost    bool
	links   [2]uint64 // counters of NVLink before, in KiB
	linksAt time.Time

	visits    int        // of the goroutine that makes the slow calls
	usedUntil uint64     // time of the last use of processes that was read, in µs
	gpm       [2]uintptr // samples before and now; 0: not supported
	sampled   bool       // gpm[0] is a sample

	slow slowReadings
}

// openNVIDIA loads NVML and finds the GPUs. It starts nvidia-smi where the library cannot be loaded, or is older than a
// driver that was updated since it was loaded.
func openNVIDIA(ctx context.Context) (gpuReader, error) {
	lib, err := loadNVML(nvmlLibrary)
	if err != nil {
		return openSMI(ctx)
	}
	r, err := newNVIDIA(lib)
	if err == errNVMLVersion {
		if r, err := openSMI(ctx); err == nil {
			return r, nil
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.joined.Go(func() { r.watch(ctx) })
	return r, nil
}

// newNVIDIA finds the GPUs. The slow calls are left to the caller.
func newNVIDIA(lib *nvmlFunctions) (*nvidia, error) {
	if !lib.usable() {
		return nil, errors.New("NVML: functions are missing")
	}
	if result := lib.start(); result != nvmlSuccess {
		return nil, nvmlError(result)
	}
	r := &nvidia{lib: lib}
	var n uint32
	if result := lib.count(&n); result != nvmlSuccess {
		lib.close()
		return nil, nvmlError(result)
	}
	for i := range min(n, maxGPUs) {
		var handle uintptr
		switch result := lib.handle(i, &handle); result {
		case nvmlSuccess:
			r.add(handle)
		case nvmlNoPermission: // of another container
		default:
			r.devices = append(r.devices, &nvmlDevice{lost: true, fixed: event.GPU{Name: "NVIDIA GPU"}})
		}
	}
	if len(r.devices) == 0 {
		lib.close()
		return nil, errNoGPU
	}
	for _, d := range r.devices {
		d.slow.reset()
	}
	return r, nil
}

// add adds a GPU, or its instances if it is in MIG mode: NVML then reports the use of the instances only.
func (r *nvidia) add(handle uintptr) {
	var now, pending, most uint32
	if r.lib.mig == nil || r.lib.migCount == nil || r.lib.migHandle == nil ||
		r.lib.mig(handle, &now, &pending) != nvmlSuccess || now == 0 || r.lib.migCount(handle, &most) != nvmlSuccess {
		r.devices = append(r.devices, r.newDevice(handle))
		return
	}
	for i := range most {
		var instance uintptr
		if r.lib.migHandle(handle, i, &instance) == nvmlSuccess && len(r.devices) < maxGPUs {
			r.devices = append(r.devices, r.newDevice(instance))
		}
	}
}

// newDevice reads what does not change.
func (r *nvidia) newDevice(handle uintptr) *nvmlDevice {
	d, lib := &nvmlDevice{handle: handle}, r.lib
	d.fixed.Name = "NVIDIA GPU"
	var name [96]byte
	if lib.name != nil && lib.name(handle, &name[0], uint32(len(name))) == nvmlSuccess {
		text, _, _ := bytes.Cut(name[:], []byte{0})
		d.fixed.Name = string(text)
	}
	d.fixed.MaxClock = d.clock(lib.maxClock, nvmlClockSM)
	d.fixed.MaxMemClock = d.clock(lib.maxClock, nvmlClockMemory)
	if bits := d.number(lib.busWidth, 1); bits.OK() && d.fixed.MaxMemClock.OK() { // two transfers a clock
		d.fixed.MemBandwidth = event.DerivedValue(bits.V / 8 * 2 * d.fixed.MaxMemClock.V)
	}
	support := [2]uint32{1, 0} // version, supported
	if lib.gpmSupport == nil || lib.gpmAlloc == nil || lib.gpmGet == nil || lib.gpmFree == nil || lib.gpmMetrics == nil ||
		lib.gpmSupport(handle, &support) != nvmlSuccess || support[1] == 0 {
		return d
	}
	for i := range d.gpm {
		if lib.gpmAlloc(&d.gpm[i]) != nvmlSuccess {
			d.gpm[i] = 0
		}
	}
	return d
}

// close implements gpuReader.
func (r *nvidia) close() {
	if r.stop != nil {
		r.stop()
	}
	r.joined.Wait()
	for _, d := range r.devices {
		for _, sample := range d.gpm {
			if sample != 0 {
				r.lib.gpmFree(sample)
			}
		}
	}
	r.lib.close()
}

// read implements gpuReader. A GPU that was removed, or whose driver fails, has no readings; if none has, the driver is
// opened again.
func (r *nvidia) read() ([]event.GPU, []event.GPUProcess, error) {
	gpus, users, failed := make([]event.GPU, len(r.devices)), []event.GPUProcess{}, int32(nvmlLost)
	listed, read := true, false
	for i, d := range r.devices {
		gpus[i].Name = d.fixed.Name
		if d.lost {
			continue
		}
		if result := r.readDevice(d, &gpus[i]); result != nvmlSuccess {
			gpus[i], failed, d.lost = event.GPU{Name: d.fixed.Name}, result, result == nvmlLost
			continue
		}
		read = true
		list, ok := r.processes(d, i)
		r.listed(d, &gpus[i], list)
		users, listed = append(users, list...), listed && ok
	}
	if !read {
		return nil, nil, nvmlError(failed)
	}
	if !listed {
		users = nil
	}
	return gpus, users, nil
}

// seldomEvery is how many times more seldom what rarely changes is read.
const seldomEvery = 4

// Kinds of clocks, PCIe counters and fields of NVML.
const (
	nvmlClockSM, nvmlClockMemory  = 1, 2
	nvmlPCIeSent, nvmlPCIeIn      = 0, 1
	nvmlMemoryTemperature         = 82
	nvmlLinksSent, nvmlLinksIn    = 138, 139
	nvmlAllLinks                  = math.MaxUint32
	nvmlPowerCap, nvmlPowerBrake  = 0x4, 0x80
	nvmlThermalSoft, nvmlThermal  = 0x20, 0x40
	nvmlKindUint, nvmlKindULong   = 1, 2
	nvmlKindUint64, nvmlKindInt64 = 3, 4
)

// readDevice reads the values of one GPU. The result is nvmlSuccess unless the first call fails for another reason than
// that it is not supported or not permitted: the GPU or the driver is gone.
func (r *nvidia) readDevice(d *nvmlDevice, g *event.GPU) int32 {
	lib := r.lib
	*g = d.fixed
	var share [2]uint32
	if lib.util != nil {
		result := lib.util(d.handle, &share)
		if result != nvmlSuccess && result != nvmlNotSupported && result != nvmlNoPermission {
			return result
		}
		g.Util, g.MemBusy = nvmlReading(result, uint64(share[0]), 0.01), nvmlReading(result, uint64(share[1]), 0.01)
	}
	d.memory(lib, g)
	if d.reads%seldomEvery == 0 {
		d.fixed.PowerLimit, d.fixed.MemClock = d.number(lib.limit, 1e-3), d.clock(lib.clock, nvmlClockMemory)
	}
	d.reads++
	g.PowerLimit, g.MemClock = d.fixed.PowerLimit, d.fixed.MemClock
	g.Power, g.Clock = d.number(lib.power, 1e-3), d.clock(lib.clock, nvmlClockSM)
	if lib.temperature != nil {
		var celsius uint32
		g.Temperature = nvmlReading(lib.temperature(d.handle, 0, &celsius), uint64(celsius), 1)
	}
	if lib.reasons != nil {
		var bits uint64
		result := lib.reasons(d.handle, &bits)
		g.PowerCapped = nvmlReading(result, min(bits&nvmlPowerCap, 1), 1)
		g.ThermallySlowed = nvmlReading(result, min(bits&(nvmlThermalSoft|nvmlThermal), 1), 1)
		g.PowerBraked = nvmlReading(result, min(bits&nvmlPowerBrake, 1), 1)
	}
	d.fields(lib, g)
	return nvmlSuccess
}

// nvmlReading converts a result. NVML sets all bits of values that it does not have.
func nvmlReading(result int32, v uint64, unit float64) event.Reading {
	switch {
	case result == nvmlNoPermission:
		return event.Absent(event.NotPermitted)
	case result != nvmlSuccess, v == math.MaxUint32, v == math.MaxUint64:
		return event.Absent(event.NotReported)
	}
	return measured(float64(v) * unit)
}

// number calls a function that returns a number.
func (d *nvmlDevice) number(f func(uintptr, *uint32) int32, unit float64) event.Reading {
	if f == nil {
		return event.Absent(event.NotReported)
	}
	var v uint32
	return nvmlReading(f(d.handle, &v), uint64(v), unit)
}

func (d *nvmlDevice) clock(f func(uintptr, uint32, *uint32) int32, kind uint32) event.Reading {
	if f == nil {
		return event.Absent(event.NotReported)
	}
	return d.number(func(handle uintptr, v *uint32) int32 { return f(handle, kind, v) }, 1e6)
}

// memory reads what is in use without what the driver keeps, as nvidia-smi does.
func (d *nvmlDevice) memory(lib *nvmlFunctions, g *event.GPU) {
	m := nvmlMemory{version: nvmlMemoryVersion}
	if lib.memory != nil {
		if result := lib.memory(d.handle, &m); result == nvmlSuccess && m.total > 0 {
			g.MemUsed, g.MemTotal, g.MemReserved = nvmlReading(result, m.used, 1), nvmlReading(result, m.total, 1), nvmlReading(result, m.reserved, 1)
			return
		}
	}
	var old [3]uint64 // total, free, used
	if lib.memoryV1 != nil {
		if result := lib.memoryV1(d.handle, &old); result == nvmlSuccess && old[0] > 0 {
			g.MemTotal, g.MemUsed = nvmlReading(result, old[0], 1), nvmlReading(result, old[2], 1)
		}
	}
}

// fields reads the values that have no function of their own.
func (d *nvmlDevice) fields(lib *nvmlFunctions, g *event.GPU) {
	if lib.fields == nil {
		return
	}
	list := [...]nvmlField{{id: nvmlMemoryTemperature}, {id: nvmlLinksSent, scope: nvmlAllLinks}, {id: nvmlLinksIn, scope: nvmlAllLinks}}
	if lib.fields(d.handle, int32(len(list)), &list[0]) != nvmlSuccess {
		return
	}
	g.MemTemperature = list[0].reading()
	if g.MemTemperature.OK() && g.MemTemperature.V == 0 { // GPUs without the sensor
		g.MemTemperature = event.Absent(event.NotReported)
	}
	now := time.Now()
	since := now.Sub(d.linksAt).Seconds()
	for i, into := range [...]*event.Reading{&g.NVLinkOut, &g.NVLinkIn} {
		counter := list[1+i].reading()
		switch {
		case !counter.OK():
			*into = counter
		case d.linksAt.IsZero(), counter.V < float64(d.links[i]): // reset with the driver
			*into = event.Absent(event.NotYet)
		default:
			*into = measured((counter.V - float64(d.links[i])) * 1024 / since)
		}
		d.links[i] = uint64(counter.V)
	}
	d.linksAt = now
}

// reading returns the value of a field; absent if its type is not a count.
func (f *nvmlField) reading() event.Reading {
	switch f.kind {
	case nvmlKindUint:
		return nvmlReading(f.result, f.value&math.MaxUint32, 1)
	case nvmlKindULong, nvmlKindUint64, nvmlKindInt64:
		return nvmlReading(f.result, f.value, 1)
	}
	return event.Absent(event.NotReported)
}

// processes lists the processes that use a GPU, for computing or graphics; false if the driver does not list them.
func (r *nvidia) processes(d *nvmlDevice, gpu int) (list []event.GPUProcess, ok bool) {
	for _, f := range [...]func(uintptr, *uint32, *nvmlProcess) int32{r.lib.processes, r.lib.graphics} {
		n := uint32(len(r.found))
		if f == nil || f(d.handle, &n, &r.found[0]) != nvmlSuccess {
			continue
		}
		ok = true
		for _, p := range r.found[:min(n, uint32(len(r.found)))] {
			if !slices.ContainsFunc(list, func(u event.GPUProcess) bool { return u.PID == int(p.pid) }) { // else it does both
				list = append(list, event.GPUProcess{GPU: gpu, PID: int(p.pid), Mem: nvmlReading(nvmlSuccess, p.memory, 1)})
			}
		}
	}
	return list, ok
}
