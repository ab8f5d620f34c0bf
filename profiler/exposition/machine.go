package exposition

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// The limits on series of a machine.
const (
	staleAfter = 10 * time.Second // an older sample is not exported
	maxCores   = 1024             // cores that are exported individually
	maxGPUs    = 64
)

// Metrics from samples of the machine.
var (
	cpu       = gauge("llmtop.host.cpu.usage", "1", "Share of the machine's CPU time that was busy", engineAttr)
	coreUsage = gauge("llmtop.host.core.usage", "1", "Share of a core's time that was busy", engineAttr, "core")
	cpuLimit  = gauge("llmtop.host.cpu.limit_cores", "{core}", "CPU limit of the control group in cores", engineAttr)
	frequency = gauge("llmtop.host.cpu.frequency", "Hz", "Mean frequency of the cores", engineAttr)
	load      = gauge("llmtop.host.load1", "", "Load average of one minute", engineAttr)
	memUsed   = gauge("llmtop.host.memory.used", "By", "Memory in use", engineAttr)
	memTotal  = gauge("llmtop.host.memory.limit", "By", "Memory of the machine, or the limit of the control group if it is lower", engineAttr)

	processCPU     = gauge("llmtop.process.cpu_cores", "{core}", "CPU use of a process in cores", engineAttr, "process")
	processWait    = gauge("llmtop.process.run_wait", "1", "Time that threads waited for a core / wall clock", engineAttr, "process")
	processRSS     = gauge("llmtop.process.resident_memory", "By", "Resident set size of a process", engineAttr, "process")
	processPeak    = gauge("llmtop.process.peak_resident_memory", "By", "Peak resident set size of a process", engineAttr, "process")
	processThreads = gauge("llmtop.process.threads", "{thread}", "Threads of a process", engineAttr, "process")
	processFaults  = gauge("llmtop.process.major_faults", "{fault}/s", "Major page faults per second", engineAttr, "process")
	diskRead       = counter("llmtop.process.disk_read", "By", "Bytes read from storage since the process started", engineAttr, "process")
	diskWritten    = counter("llmtop.process.disk_written", "By", "Bytes written to storage since the process started", engineAttr, "process")
	diskReads      = gauge("llmtop.process.disk_reads", "{operation}/s", "Read calls per second", engineAttr, "process")
	diskWrites     = gauge("llmtop.process.disk_writes", "{operation}/s", "Write calls per second", engineAttr, "process")

	gpuUsage  = gauge("llmtop.gpu.usage", "1", "Share of the time that the GPU was busy", engineAttr, "gpu", "name")
	gpuUsed   = gauge("llmtop.gpu.memory.used", "By", "GPU memory in use", engineAttr, "gpu", "name")
	gpuMemory = gauge("llmtop.gpu.memory.limit", "By", "GPU memory", engineAttr, "gpu", "name")
	gpuPower  = gauge("llmtop.gpu.power", "W", "Power draw of the GPU", engineAttr, "gpu", "name")
	gpuHeat   = gauge("llmtop.gpu.temperature", "Cel", "Temperature of the GPU", engineAttr, "gpu", "name")
	gpuClock  = gauge("llmtop.gpu.clock", "Hz", "Clock of the GPU", engineAttr, "gpu", "name")
)

func (s *gathering) machine(h *store.Host) {
	s.reading(cpu, h.CPU)
	for i, share := range h.Cores[:min(len(h.Cores), maxCores)] {
		s.reading(coreUsage, event.MeasuredValue(share), strconv.Itoa(i))
	}
	s.reading(cpuLimit, h.CPULimit)
	s.reading(frequency, h.Frequency)
	s.reading(load, h.Load1)
	s.reading(memUsed, h.MemUsed)
	s.reading(memTotal, h.MemTotal)
	s.process(&h.Engine, "engine")
	s.process(&h.Self, "llmtop")
	for i, g := range h.GPUs[:min(len(h.GPUs), maxGPUs)] {
		gpu, name := strconv.Itoa(i), cleanLabel(g.Name)
		s.reading(gpuUsage, g.Util, gpu, name)
		s.reading(gpuUsed, g.MemUsed, gpu, name)
		s.reading(gpuMemory, g.MemTotal, gpu, name)
		s.reading(gpuPower, g.Power, gpu, name)
		s.reading(gpuHeat, g.Temperature, gpu, name)
		s.reading(gpuClock, g.Clock, gpu, name)
	}
}

// process adds the metrics of a process: the engine, or llmtop itself. Both are the same process if the engine runs
// inside llmtop.
func (s *gathering) process(p *event.Process, name string) {
	s.reading(processCPU, p.CPU, name)
	s.reading(processWait, p.RunWait, name)
	s.reading(processRSS, p.RSS, name)
	s.reading(processPeak, p.Peak, name)
	s.reading(processThreads, p.Threads, name)
	s.reading(processFaults, p.Faults, name)
	s.sum(diskRead, p.ReadSum, p.PID, name)
	s.sum(diskWritten, p.WriteSum, p.PID, name)
	s.reading(diskReads, p.ReadOps, name)
	s.reading(diskWrites, p.WriteOps, name)
}

// sum adds a counter that has counted since the process started. Negative values are ignored.
func (s *gathering) sum(i *instrument, r event.Reading, pid int, name string) {
	if r.OK() && r.V >= 0 {
		s.count(i, r.V, s.countingSince(i, name, pid, uint64(r.V)), name)
	}
}
