package event

import "math/bits"

// Host is one sample of the machine and of two processes: the engine's and llmtop's own (one process if the engine runs
// inside llmtop). Rates are averaged over Interval, the time since the previous sample.
type Host struct {
	Interval int64 `wire:"interval"` // ns

	Cores     []float64 `wire:"cores"`   // utilisation per core, 0..1
	Clocks    []float64 `wire:"core_hz"` // Hz per core; empty if the system does not report it
	CPU       Reading   // utilisation of the machine, 0..1
	Frequency Reading   // Hz, mean over the cores
	MaxClock  Reading   // highest frequency of a core in Hz, mean over the cores
	Thermal   Reading   // thermal throttling events/s of cores and packages
	Steal     Reading   // share of the machine's CPU time that the hypervisor gave to others, 0..1
	Load1     Reading   // load average over one minute
	Runnable  Reading   // threads of the machine that run or wait for a core
	MemTotal  Reading   // bytes; the lowest limit of the control groups of the engine's process if that is lower
	MemUsed   Reading   // bytes of the machine, or of the group with that limit
	Limited   bool      `wire:"limited"` // MemTotal or CPULimit is that of a control group

	ReadBandwidth []float64 `wire:"read_bandwidth"` // B/s that [i]: 2^i threads, the last: all cores read from memory; empty until it was measured
	CPULimit      Reading   // CPU quota of the engine's process in cores: the lowest of its control groups
	Throttled     Reading   // time that these groups were throttled at their quotas / wall time, summed over cores

	Received, Sent                       Reading // B/s over all network interfaces but loopback
	CPUPressure, MemPressure, IOPressure Reading // share of wall time some task waited for a core, memory, storage
	Power                                Reading // W of the processor packages

	ModelBytes, ModelCached Reading // bytes of the model file, and of it in the page cache; not in every sample

	// ExpertsCached is the share of each expert's bytes in the page cache in percent, indexed [layer*experts+expert],
	// UnknownShare where it was not measured; not in every sample.
	ExpertsCached []uint8 `wire:"experts_cached"`

	Engine       Process      `wire:"engine,always"`
	Self         Process      `wire:"self,always"`
	GPUs         []GPU        `wire:"gpus"`
	NoGPU        string       `wire:"no_gpu"` // why GPUs is empty: "no GPU", "NVML: driver not loaded"
	GPUProcesses []GPUProcess // what processes use of the GPUs, as the driver lists them; of this machine only, not sent
}

// ReadWith returns the B/s that a number of threads read from memory together, of the next measured number of threads; with
// 0 that of all cores. It is NotYet until it was measured.
func (h *Host) ReadWith(threads int) Reading {
	i := len(h.ReadBandwidth) - 1
	if threads > 0 {
		i = min(i, bits.Len(uint(threads-1)))
	}
	if i < 0 || !(h.ReadBandwidth[i] > 0) {
		return Absent(NotYet)
	}
	return MeasuredValue(h.ReadBandwidth[i])
}

// UnknownShare is a share in percent that was not measured.
const UnknownShare = 255

// Process is one process in a Host sample.
type Process struct {
	PID              int     `wire:"pid"`
	Interval         int64   `wire:"interval"` // ns that its rates cover; 0: as long as the sample
	CPU              Reading // cores in use: CPU time / wall time
	RunWait          Reading // share of wall time a runnable thread waited for a core, summed over threads
	RSS, Peak        Reading // bytes
	Read, Write      Reading // B/s from and to storage
	ReadOps          Reading // operations/s
	WriteOps         Reading // operations/s
	ReadSum          Reading // bytes since the process started
	WriteSum         Reading // bytes since the process started
	PSS              Reading // bytes, shared pages divided among the processes; not in every sample
	Faults           Reading // major page faults/s, which wait for storage
	MinorFaults      Reading // minor page faults/s
	Voluntary        Reading // context switches/s of threads that wait
	Involuntary      Reading // context switches/s of threads that were preempted
	Threads          Reading
	Cores            Reading // cores that the process may use: affinity, cpuset and CPU quota
	OutsideEngine    Reading // cores used by llmtop itself, without the engine's threads in the same process
	Launches, Graphs Reading // kernels/s and graphs/s that it launched on the GPU
	ToGPU, FromGPU   Reading // B/s that it copied
	GPUWait          Reading // share of wall time that it waited for the GPU, summed over threads
	Copying          Reading // share of wall time in copies to and from the GPU
	LaunchGap        Reading // share of wall time from the end of a wait for the GPU to the next launch
	Counted          Reading // share of the time in which the calls for these were counted
	GCPause, GCCount Reading // Self only: ns of stop-the-world, and collections, within Interval
}

// Gauge identifies a series of the samples: a reading of the machine, of one process, or of all GPUs.
type Gauge uint8

// The gauges, in display order.
const (
	GaugeCPU Gauge = iota
	GaugeClock
	GaugeRunnable
	GaugeCPUPressure
	GaugeThrottled
	GaugeEngineCPU
	GaugeRunWait
	GaugeVoluntary
	GaugeInvoluntary
	GaugeMemory
	GaugeMemPressure
	GaugeRSS
	GaugePSS
	GaugeModelCached
	GaugeMinorFaults
	GaugeMajorFaults
	GaugeRead
	GaugeWrite
	GaugeIOPressure
	GaugeReceived
	GaugeSent
	GaugeGPU
	GaugeGPUEngine
	GaugeGPUMemory
	GaugeGPUDRAM
	GaugeGPUPower
	GaugeGPUClock
	GaugeGPUTemperature
	GaugePCIeIn
	GaugePCIeOut
	GaugeLaunches
	GaugeGraphs
	GaugeToGPU
	GaugeFromGPU
	GaugeGPUWait
	GaugeCopying
	GaugeLaunchGap
	GaugeCounted
	GaugePower
	GaugeSelfCPU
	GaugeSelfRSS
	GaugeGCPause
	NumGauges
	NoGauge // of readings without a series
)

// MachineFields, ProcessFields and GPUFields (gpu.go) are the catalogue of the readings of a Host. Event protocol,
// store, reports, exports, alerts, the gauges of the screen, its help and docs/metrics.md all come from these rows.
var (
	MachineFields = [...]Field[Host]{
		{
			Key: "cpu", JSON: "cpu_share", Metric: "llmtop.host.cpu.usage", Unit: "1",
			Name: "CPU", Help: "busy time of the machine / wall clock",
			Own: Series{GaugeCPU, "CPU", "cpu"}, At: func(h *Host) *Reading { return &h.CPU },
		},
		{
			Key: "hz", JSON: "frequency_hz", Metric: "llmtop.host.cpu.frequency", Unit: "Hz",
			Name: "frequency", Help: "mean frequency of the cores",
			Own: Series{GaugeClock, "clock", "frequency"}, At: func(h *Host) *Reading { return &h.Frequency },
		},
		{
			Key: "max_hz", JSON: "frequency_max_hz", Metric: "llmtop.host.cpu.frequency_max", Unit: "Hz",
			Name: "highest frequency", Help: "highest frequency that the cores can have, mean over the cores",
			Own: Series{NoGauge, "", "frequency_max"}, At: func(h *Host) *Reading { return &h.MaxClock },
		},
		{
			Key: "thermal", JSON: "thermal_throttles_per_s", Metric: "llmtop.host.cpu.thermal_throttles", Unit: "{event}/s",
			Name: "thermal throttling", Help: "times per second that a core or a package was slowed because of its temperature",
			Own: Series{NoGauge, "", "thermal"}, At: func(h *Host) *Reading { return &h.Thermal },
		},
		{
			Key: "steal", JSON: "steal_share", Metric: "llmtop.host.cpu.steal", Unit: "1",
			Name: "stolen", Help: "CPU time that the hypervisor gave to other machines / CPU time of all cores",
			Own: Series{NoGauge, "", "steal"}, At: func(h *Host) *Reading { return &h.Steal },
		},
		{
			Key: "load1", JSON: "load_1m", Metric: "llmtop.host.load1",
			Name: "load", Help: "load average of one minute",
			Own: Series{NoGauge, "", "load1"}, At: func(h *Host) *Reading { return &h.Load1 },
		},
		{
			Key: "runnable", JSON: "runnable_threads", Metric: "llmtop.host.runnable_threads", Unit: "{thread}",
			Name: "runnable threads", Help: "threads of the machine that run or wait for a core",
			Own: Series{GaugeRunnable, "runnable", "runnable"}, At: func(h *Host) *Reading { return &h.Runnable },
		},
		{
			Key: "mem_used", JSON: "memory_used_bytes", Metric: "llmtop.host.memory.used", Unit: "By",
			Name: "memory", Help: "memory in use: total - available",
			Own: Series{GaugeMemory, "memory", "memory_used"}, At: func(h *Host) *Reading { return &h.MemUsed },
		},
		{
			Key: "mem_total", JSON: "memory_bytes", Metric: "llmtop.host.memory.limit", Unit: "By",
			Name: "memory limit", Help: "memory of the machine, or the limit of the engine's control group if it is lower",
			Own: Series{NoGauge, "", "memory_limit"}, At: func(h *Host) *Reading { return &h.MemTotal },
		},
		{
			Key: "cpu_limit", JSON: "cpu_limit_cores", Metric: "llmtop.host.cpu.limit_cores", Unit: "{core}",
			Name: "CPU limit", Help: "CPU quota of the engine's control group",
			Own: Series{NoGauge, "", "cpu_limit"}, At: func(h *Host) *Reading { return &h.CPULimit },
		},
		{
			Key: "cpu_pressure", JSON: "cpu_pressure_share", Metric: "llmtop.host.cpu.pressure", Unit: "1",
			Name: "CPU pressure", Help: "time in which some task waited for a core / wall clock",
			Own: Series{GaugeCPUPressure, "CPU pressure", "cpu_pressure"}, At: func(h *Host) *Reading { return &h.CPUPressure },
		},
		{
			Key: "mem_pressure", JSON: "memory_pressure_share", Metric: "llmtop.host.memory.pressure", Unit: "1",
			Name: "memory pressure", Help: "time in which some task waited for memory / wall clock",
			Own: Series{GaugeMemPressure, "mem pressure", "memory_pressure"}, At: func(h *Host) *Reading { return &h.MemPressure },
		},
		{
			Key: "io_pressure", JSON: "io_pressure_share", Metric: "llmtop.host.io.pressure", Unit: "1",
			Name: "I/O pressure", Help: "time in which some task waited for storage / wall clock",
			Own: Series{GaugeIOPressure, "I/O pressure", "io_pressure"}, At: func(h *Host) *Reading { return &h.IOPressure },
		},
		{
			Key: "throttled", JSON: "throttled_share", Metric: "llmtop.host.cpu.throttled", Unit: "1",
			Name: "throttled", Help: "time that the engine's control group was throttled at its CPU quota / wall clock",
			Own: Series{GaugeThrottled, "throttled", "throttled"}, At: func(h *Host) *Reading { return &h.Throttled },
		},
		{
			Key: "net_in", JSON: "received_bytes_per_s", Metric: "llmtop.host.network.received", Unit: "By/s",
			Name: "received", Help: "bytes received by all network interfaces except loopback",
			Own: Series{GaugeReceived, "received", "received"}, At: func(h *Host) *Reading { return &h.Received },
		},
		{
			Key: "net_out", JSON: "sent_bytes_per_s", Metric: "llmtop.host.network.sent", Unit: "By/s",
			Name: "sent", Help: "bytes sent by all network interfaces except loopback",
			Own: Series{GaugeSent, "sent", "sent"}, At: func(h *Host) *Reading { return &h.Sent },
		},
		{
			Key: "power", JSON: "power_w", Metric: "llmtop.host.cpu.power", Unit: "W",
			Name: "CPU power", Help: "increase of the processors' energy counters (RAPL) / time",
			Own: Series{GaugePower, "CPU power", "cpu_power"}, At: func(h *Host) *Reading { return &h.Power },
		},
		{
			Key: "model_bytes", JSON: "model_bytes", Metric: "llmtop.host.model.size", Unit: "By",
			Name: "model file", Help: "size of the model's file",
			Own: Series{NoGauge, "", "model_bytes"}, At: func(h *Host) *Reading { return &h.ModelBytes },
		},
		{
			Key: "model_cached", JSON: "model_cached_bytes", Metric: "llmtop.host.model.cached", Unit: "By",
			Name: "model cached", Help: "bytes of the model's file in the page cache; the rest must be read from disk",
			Own: Series{GaugeModelCached, "model cached", "model_cached"}, At: func(h *Host) *Reading { return &h.ModelCached },
		},
	}

	ProcessFields = [...]Field[Process]{
		{
			Key: "cpu", JSON: "cpu_cores", Metric: "llmtop.process.cpu_cores", Unit: "{core}",
			Name: "CPU of a process", Help: "CPU time of the process / wall clock",
			Own: Series{GaugeEngineCPU, "engine CPU", "engine_cpu"}, At: func(p *Process) *Reading { return &p.CPU },
		},
		{
			Key: "outside", JSON: "cpu_outside_engine_cores", Metric: "llmtop.process.cpu_outside_engine_cores", Unit: "{core}",
			Name: "outside the engine", Help: "CPU time of the process without the engine's threads / wall clock",
			Self: Series{GaugeSelfCPU, "llmtop CPU", "self_cpu"}, At: func(p *Process) *Reading { return &p.OutsideEngine },
		},
		{
			Key: "run_wait", JSON: "run_wait_share", Metric: "llmtop.process.run_wait", Unit: "1",
			Name: "run wait", Help: "time that runnable threads waited for a core / wall clock",
			Own: Series{GaugeRunWait, "run wait", "run_wait"}, At: func(p *Process) *Reading { return &p.RunWait },
		},
		{
			Key: "rss", JSON: "rss_bytes", Metric: "llmtop.process.resident_memory", Unit: "By",
			Name: "RSS", Help: "resident set size of the process",
			Own: Series{GaugeRSS, "engine RSS", "rss"}, Self: Series{GaugeSelfRSS, "llmtop RSS", "self_rss"}, At: func(p *Process) *Reading { return &p.RSS },
		},
		{
			Key: "peak", JSON: "peak_rss_bytes", Metric: "llmtop.process.peak_resident_memory", Unit: "By",
			Name: "peak RSS", Help: "largest resident set size since the process started",
			Own: Series{NoGauge, "", "peak_rss"}, At: func(p *Process) *Reading { return &p.Peak },
		},
		{
			Key: "pss", JSON: "pss_bytes", Metric: "llmtop.process.proportional_memory", Unit: "By",
			Name: "PSS", Help: "proportional set size: each resident page / number of processes that share it; press i to measure",
			Own: Series{GaugePSS, "engine PSS", "pss"}, At: func(p *Process) *Reading { return &p.PSS },
		},
		{
			Key: "read", JSON: "disk_read_bytes_per_s", Metric: "llmtop.process.disk_read_rate", Unit: "By/s",
			Name: "disk read", Help: "bytes per second that the process read from storage",
			Own: Series{GaugeRead, "disk read", "disk_read"}, At: func(p *Process) *Reading { return &p.Read },
		},
		{
			Key: "write", JSON: "disk_write_bytes_per_s", Metric: "llmtop.process.disk_write_rate", Unit: "By/s",
			Name: "disk write", Help: "bytes per second that the process wrote to storage",
			Own: Series{GaugeWrite, "disk write", "disk_write"}, At: func(p *Process) *Reading { return &p.Write },
		},
		{
			Key: "read_sum", JSON: "disk_read_bytes", Metric: "llmtop.process.disk_read", Unit: "By", Sum: true,
			Name: "read in total", Help: "bytes read from storage since the process started",
			Own: Series{NoGauge, "", "disk_read_total"}, At: func(p *Process) *Reading { return &p.ReadSum },
		},
		{
			Key: "write_sum", JSON: "disk_write_bytes", Metric: "llmtop.process.disk_written", Unit: "By", Sum: true,
			Name: "written in total", Help: "bytes written to storage since the process started",
			Own: Series{NoGauge, "", "disk_write_total"}, At: func(p *Process) *Reading { return &p.WriteSum },
		},
		{
			Key: "read_ops", JSON: "disk_read_ops_per_s", Metric: "llmtop.process.disk_reads", Unit: "{operation}/s",
			Name: "read calls", Help: "read calls of the process",
			Own: Series{NoGauge, "", "disk_read_ops"}, At: func(p *Process) *Reading { return &p.ReadOps },
		},
		{
			Key: "write_ops", JSON: "disk_write_ops_per_s", Metric: "llmtop.process.disk_writes", Unit: "{operation}/s",
			Name: "write calls", Help: "write calls of the process",
			Own: Series{NoGauge, "", "disk_write_ops"}, At: func(p *Process) *Reading { return &p.WriteOps },
		},
		{
			Key: "faults", JSON: "major_faults_per_s", Metric: "llmtop.process.major_faults", Unit: "{fault}/s",
			Name: "major faults", Help: "page faults that waited for storage",
			Own: Series{GaugeMajorFaults, "major faults", "major_faults"}, At: func(p *Process) *Reading { return &p.Faults },
		},
		{
			Key: "minor_faults", JSON: "minor_faults_per_s", Metric: "llmtop.process.minor_faults", Unit: "{fault}/s",
			Name: "minor faults", Help: "page faults that found the page in memory",
			Own: Series{GaugeMinorFaults, "minor faults", "minor_faults"}, At: func(p *Process) *Reading { return &p.MinorFaults },
		},
		{
			Key: "voluntary", JSON: "voluntary_switches_per_s", Metric: "llmtop.process.voluntary_switches", Unit: "{switch}/s",
			Name: "switches", Help: "context switches of threads that wait (voluntary)",
			Own: Series{GaugeVoluntary, "switches", "switches"}, At: func(p *Process) *Reading { return &p.Voluntary },
		},
		{
			Key: "involuntary", JSON: "involuntary_switches_per_s", Metric: "llmtop.process.involuntary_switches", Unit: "{switch}/s",
			Name: "preempted", Help: "context switches of threads that were preempted (involuntary)",
			Own: Series{GaugeInvoluntary, "preempted", "preempted"}, At: func(p *Process) *Reading { return &p.Involuntary },
		},
		{
			Key: "threads", JSON: "threads", Metric: "llmtop.process.threads", Unit: "{thread}",
			Name: "threads", Help: "threads of the process",
			Own: Series{NoGauge, "", "threads"}, At: func(p *Process) *Reading { return &p.Threads },
		},
		{
			Key: "cores", JSON: "available_cores", Metric: "llmtop.process.available_cores", Unit: "{core}",
			Name: "cores available", Help: "cores that the process may use",
			Own: Series{NoGauge, "", "cores_available"}, At: func(p *Process) *Reading { return &p.Cores },
		},
		{
			Key: "launches", JSON: "gpu_launches_per_s", Metric: "llmtop.process.gpu_launches", Unit: "{launch}/s",
			Name: "launches", Help: "kernels that the process launched on the GPU",
			Own: Series{GaugeLaunches, "GPU launches", "gpu_launches"}, At: func(p *Process) *Reading { return &p.Launches },
		},
		{
			Key: "graphs", JSON: "gpu_graphs_per_s", Metric: "llmtop.process.gpu_graphs", Unit: "{launch}/s",
			Name: "graph launches", Help: "CUDA graphs that the process launched",
			Own: Series{GaugeGraphs, "GPU graphs", "gpu_graphs"}, At: func(p *Process) *Reading { return &p.Graphs },
		},
		{
			Key: "to_gpu", JSON: "copied_to_gpu_bytes_per_s", Metric: "llmtop.process.copied_to_gpu", Unit: "By/s",
			Name: "copies to the GPU", Help: "bytes that the process copied from memory to the GPU",
			Own: Series{GaugeToGPU, "copies to GPU", "copied_to_gpu"}, At: func(p *Process) *Reading { return &p.ToGPU },
		},
		{
			Key: "from_gpu", JSON: "copied_from_gpu_bytes_per_s", Metric: "llmtop.process.copied_from_gpu", Unit: "By/s",
			Name: "copies from the GPU", Help: "bytes that the process copied from the GPU to memory",
			Own: Series{GaugeFromGPU, "copies from GPU", "copied_from_gpu"}, At: func(p *Process) *Reading { return &p.FromGPU },
		},
		{
			Key: "gpu_wait", JSON: "gpu_wait_share", Metric: "llmtop.process.gpu_wait", Unit: "1",
			Name: "waiting for the GPU", Help: "time that threads of the process waited for the GPU / wall clock",
			Own: Series{GaugeGPUWait, "waits for GPU", "gpu_wait"}, At: func(p *Process) *Reading { return &p.GPUWait },
		},
		{
			Key: "copying", JSON: "gpu_copy_share", Metric: "llmtop.process.gpu_copying", Unit: "1",
			Name: "copying to and from the GPU", Help: "time that threads of the process spent in copies between memory and the GPU / wall clock",
			Own: Series{GaugeCopying, "copy time", "gpu_copying"}, At: func(p *Process) *Reading { return &p.Copying },
		},
		{
			Key: "launch_gap", JSON: "gpu_launch_gap_share", Metric: "llmtop.process.gpu_launch_gap", Unit: "1",
			Name: "GPU waiting for launches", Help: "time from the end of a wait for all work of a stream to the next launch / wall clock",
			Own: Series{GaugeLaunchGap, "launch gaps", "gpu_launch_gap"}, At: func(p *Process) *Reading { return &p.LaunchGap },
		},
		{
			Key: "cuda_counted", JSON: "cuda_counted_share", Metric: "llmtop.process.cuda_counted", Unit: "1",
			Name: "calls counted", Help: "time in which calls of CUDA were counted / wall clock",
			Own: Series{GaugeCounted, "calls counted", "cuda_counted"}, At: func(p *Process) *Reading { return &p.Counted },
		},
		{
			Key: "gc_pause", Metric: "llmtop.process.gc_pause", Unit: "ns",
			Name: "GC pause", Help: "time in which llmtop's garbage collector stopped it, within the sample interval",
			Self: Series{GaugeGCPause, "GC pause", "gc_pause"}, At: func(p *Process) *Reading { return &p.GCPause },
		},
		{
			Key: "gc_count", Metric: "llmtop.process.gc_collections", Unit: "{collection}",
			Name: "collections", Help: "garbage collections of llmtop within the sample interval",
			Self: Series{NoGauge, "", "gc_collections"}, At: func(p *Process) *Reading { return &p.GCCount },
		},
	}
)
