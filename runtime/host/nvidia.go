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
	metrics nvmlMetrics      // of GPM; this and the lists are reused
	found   [256]nvmlProcess // of a GPU
	used    [512]nvmlUsage   // of a GPU

	stop   context.CancelFunc
	joined sync.WaitGroup

	mu   sync.Mutex         // guards pcie
	pcie [][2]event.Reading // received and sent by each device
}

// nvmlDevice is the state of a GPU, or of an instance of one in MIG mode.
type nvmlDevice struct {
	handle    uintptr
	fixed     event.GPU // the readings that do not change
	lost      bool
	usedUntil uint64     // time of the last use of processes that was read, in µs
	gpm       [2]uintptr // samples before and now; 0: not supported
	sampled   bool       // gpm[0] is a sample
	links     [2]uint64  // counters of NVLink before, in KiB
	linksAt   time.Time
}

// openNVIDIA loads NVML and finds the GPUs; where the library cannot be loaded, it starts nvidia-smi.
func openNVIDIA(ctx context.Context) (gpuReader, error) {
	lib, err := loadNVML(nvmlLibrary)
	if err != nil {
		return openSMI(ctx)
	}
	return newNVIDIA(ctx, lib)
}

func newNVIDIA(ctx context.Context, lib *nvmlFunctions) (gpuReader, error) {
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
	r.pcie = make([][2]event.Reading, len(r.devices))
	for i := range r.pcie {
		r.pcie[i] = [2]event.Reading{event.Absent(event.NotYet), event.Absent(event.NotYet)}
	}
	ctx, r.stop = context.WithCancel(ctx)
	if lib.pcie != nil {
		r.joined.Go(func() { r.watchPCIe(ctx) })
	} else {
		clear(r.pcie)
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
	r.stop()
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

// read implements gpuReader. A GPU that was removed has no readings; if none is left, the driver is opened again.
func (r *nvidia) read() ([]event.GPU, []event.GPUProcess, error) {
	gpus, users, lost := make([]event.GPU, len(r.devices)), []event.GPUProcess{}, 0
	listed := true
	for i, d := range r.devices {
		gpus[i].Name = d.fixed.Name
		if !d.lost {
			if result := r.readDevice(d, &gpus[i]); result == nvmlUninitialized || result == nvmlDriverNotLoaded {
				return nil, nil, nvmlError(result)
			}
		}
		if d.lost {
			gpus[i] = event.GPU{Name: d.fixed.Name}
			lost++
			continue
		}
		list, ok := r.processes(d, i, gpus[i].Util)
		users, listed = append(users, list...), listed && ok
	}
	if lost == len(r.devices) {
		return nil, nil, errors.New("NVML: the GPU is lost")
	}
	if !listed {
		users = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range gpus {
		if !r.devices[i].lost {
			gpus[i].PCIeIn, gpus[i].PCIeOut = r.pcie[i][0], r.pcie[i][1]
		}
	}
	return gpus, users, nil
}

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

// readDevice reads the values of one GPU. The result is that of the first call that shows that the GPU or the driver is
// gone.
func (r *nvidia) readDevice(d *nvmlDevice, g *event.GPU) int32 {
	lib := r.lib
	*g = d.fixed
	var share [2]uint32
	if lib.util != nil {
		result := lib.util(d.handle, &share)
		if result == nvmlLost || result == nvmlUninitialized || result == nvmlDriverNotLoaded {
			d.lost = result == nvmlLost
			return result
		}
		g.Util, g.MemBusy = nvmlReading(result, uint64(share[0]), 0.01), nvmlReading(result, uint64(share[1]), 0.01)
	}
	d.memory(lib, g)
	g.Power, g.PowerLimit = d.number(lib.power, 1e-3), d.number(lib.limit, 1e-3)
	if lib.total != nil {
		var millijoules uint64
		g.Energy = nvmlReading(lib.total(d.handle, &millijoules), millijoules, 1e-3)
	}
	g.Clock, g.MemClock = d.clock(lib.clock, nvmlClockSM), d.clock(lib.clock, nvmlClockMemory)
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
	r.measure(d, g)
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

// Metrics of GPM.
const nvmlSM, nvmlOccupancy, nvmlTensor, nvmlDRAM = 2, 3, 5, 10

// measure reads the GPU's performance counters over the time since the last call.
func (r *nvidia) measure(d *nvmlDevice, g *event.GPU) {
	if d.gpm[0] == 0 || d.gpm[1] == 0 {
		return
	}
	into := map[uint32]*event.Reading{nvmlSM: &g.SM, nvmlOccupancy: &g.Occupancy, nvmlTensor: &g.Tensor, nvmlDRAM: &g.DRAM}
	result := r.lib.gpmGet(d.handle, d.gpm[1])
	if result != nvmlSuccess || !d.sampled {
		for _, r := range into {
			if *r = nvmlReading(result, 0, 1); r.OK() {
				*r = event.Absent(event.NotYet)
			}
		}
		d.sampled = result == nvmlSuccess
	} else {
		m := &r.metrics
		m.version, m.n, m.samples = 1, 0, d.gpm
		for id := range into {
			m.metrics[m.n] = nvmlMetric{id: id}
			m.n++
		}
		result = r.lib.gpmMetrics(m)
		for _, v := range m.metrics[:m.n] {
			if result == nvmlSuccess && v.result == nvmlSuccess && v.value >= 0 && v.value <= 100.5 {
				*into[v.id] = measured(min(v.value/100, 1))
			}
		}
	}
	if result == nvmlSuccess {
		d.gpm[0], d.gpm[1] = d.gpm[1], d.gpm[0]
	}
}

// processes lists the processes that use a GPU, for computing or graphics; false if the driver does not list them.
func (r *nvidia) processes(d *nvmlDevice, gpu int, busy event.Reading) (list []event.GPUProcess, ok bool) {
	first := d.usedUntil == 0
	shares := r.shares(d, busy)
	for _, f := range [...]func(uintptr, *uint32, *nvmlProcess) int32{r.lib.processes, r.lib.graphics} {
		n := uint32(len(r.found))
		if f == nil || f(d.handle, &n, &r.found[0]) != nvmlSuccess {
			continue
		}
		ok = true
		for _, p := range r.found[:min(n, uint32(len(r.found)))] {
			if slices.ContainsFunc(list, func(u event.GPUProcess) bool { return u.PID == int(p.pid) }) {
				continue // it does both
			}
			u := event.GPUProcess{GPU: gpu, PID: int(p.pid), Mem: nvmlReading(nvmlSuccess, p.memory, 1)}
			switch {
			case shares != nil:
				u.Util = measured(shares[p.pid])
			case first:
				u.Util = event.Absent(event.NotYet)
			}
			list = append(list, u)
		}
	}
	return list, ok
}

// shares returns the busy time of the processes that used the GPU since the last call, as means of the driver's samples;
// nil if it is unknown. The driver has no samples of processes that did not use it.
func (r *nvidia) shares(d *nvmlDevice, busy event.Reading) map[uint32]float64 {
	if r.lib.usage == nil {
		return nil
	}
	n, after := uint32(len(r.used)), d.usedUntil
	result := r.lib.usage(d.handle, &r.used[0], &n, after)
	if result == nvmlNotFound && busy.OK() && busy.V == 0 {
		return map[uint32]float64{}
	}
	if result != nvmlSuccess {
		return nil
	}
	sums, counts := make(map[uint32]float64), make(map[uint32]float64)
	for _, u := range r.used[:min(n, uint32(len(r.used)))] {
		if u.at > after && u.sm <= 100 {
			sums[u.pid], counts[u.pid] = sums[u.pid]+float64(u.sm)/100, counts[u.pid]+1
			d.usedUntil = max(d.usedUntil, u.at)
		}
	}
	if after == 0 { // samples of many seconds
		return nil
	}
	for pid, n := range counts {
		sums[pid] /= n
	}
	return sums
}

// watchPCIe reads the traffic of all devices in turn. Each call takes 20 ms, over which the driver measures.
func (r *nvidia) watchPCIe(ctx context.Context) {
	for ctx.Err() == nil {
		for i, d := range r.devices {
			for direction, counter := range [...]uint32{nvmlPCIeIn, nvmlPCIeSent} {
				if ctx.Err() != nil {
					return
				}
				v := d.number(func(handle uintptr, kilobytes *uint32) int32 { return r.lib.pcie(handle, counter, kilobytes) }, 1e3)
				r.mu.Lock()
				r.pcie[i][direction] = v
				r.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(gpuInterval):
		}
	}
}
