package event

import (
	"slices"
	"strconv"
)

// GPU is one accelerator in a Host sample.
type GPU struct {
	Name    string `wire:"name"`
	Address string // on the PCI bus, as "0000:41:00.0", "" if it is not needed; of this machine only, not sent
	Unified bool   `wire:"unified"` // it is part of the processor, and uses the machine's memory

	Util, EngineUtil, OthersUtil  Reading // busy time, 0..1: in all, for the engine's processes, for others
	MemBusy                       Reading // time in which memory was read or written, 0..1
	MemUsed, EngineMem, OthersMem Reading // bytes
	MemReserved, MemTotal         Reading // bytes
	MemBandwidth                  Reading // B/s at most
	DRAM, SM, Occupancy, Tensor   Reading // 0..1
	Power, PowerLimit, Energy     Reading // W, W, J
	Clock, MaxClock               Reading // Hz
	MemClock, MaxMemClock         Reading // Hz
	PowerCapped, ThermallySlowed  Reading // 0 or 1
	PowerBraked                   Reading // 0 or 1
	Temperature, MemTemperature   Reading // °C
	PCIeIn, PCIeOut               Reading // B/s
	NVLinkIn, NVLinkOut           Reading // B/s
}

// GPUProcess is what one process uses of a GPU.
type GPUProcess struct {
	GPU, PID  int     // index in Host.GPUs; 0 as PID: a process that this one cannot identify
	Mem, Util Reading // bytes; busy time, 0..1
}

// EngineDevice names the GPUs on which the engine has memory, as "NVIDIA H200" or "2 x NVIDIA H200"; "" if there is none.
func (h *Host) EngineDevice() string {
	name, n := "", 0
	for i := range h.GPUs {
		if g := &h.GPUs[i]; g.EngineMem.OK() && g.EngineMem.V > 0 {
			if n++; name != "" && name != g.Name {
				name = "GPU" // of several kinds
			} else {
				name = g.Name
			}
		}
	}
	if n > 1 {
		return strconv.Itoa(n) + " x " + name
	}
	return name
}

// GPUFields are the readings of a GPU. The screen and the alerts show them folded over all GPUs.
var GPUFields = [...]Field[GPU]{
	{
		Key: "util", JSON: "utilisation", Metric: "llmtop.gpu.usage", Unit: "1",
		Name: "GPU", Help: "busy time of the GPU / wall clock", fold: mean, folded: "mean of all GPUs",
		Own: Series{GaugeGPU, "GPU", "gpu"}, At: func(g *GPU) *Reading { return &g.Util },
	},
	{
		Key: "engine", JSON: "engine_share", Metric: "llmtop.gpu.engine_usage", Unit: "1",
		Name: "engine on the GPU", Help: "busy time of the GPU for the engine's processes / wall clock", fold: mean, folded: "mean of all GPUs",
		Own: Series{GaugeGPUEngine, "engine GPU", "gpu_engine"}, At: func(g *GPU) *Reading { return &g.EngineUtil },
	},
	{
		Key: "others", JSON: "others_share", Metric: "llmtop.gpu.others_usage", Unit: "1",
		Name: "others on the GPU", Help: "busy time of the GPU for other processes / wall clock", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_others"}, At: func(g *GPU) *Reading { return &g.OthersUtil },
	},
	{
		Key: "mem_busy", JSON: "memory_busy_share", Metric: "llmtop.gpu.memory.busy", Unit: "1",
		Name: "GPU memory busy", Help: "time in which GPU memory was read or written / wall clock", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_busy"}, At: func(g *GPU) *Reading { return &g.MemBusy },
	},
	{
		Key: "mem_used", JSON: "memory_used_bytes", Metric: "llmtop.gpu.memory.used", Unit: "By",
		Name: "GPU memory", Help: "GPU memory in use", fold: sum, folded: "sum of all GPUs",
		Own: Series{GaugeGPUMemory, "GPU memory", "gpu_memory"}, At: func(g *GPU) *Reading { return &g.MemUsed },
	},
	{
		Key: "mem_engine", JSON: "engine_memory_bytes", Metric: "llmtop.gpu.memory.engine", Unit: "By",
		Name: "GPU memory of the engine", Help: "GPU memory of the engine's processes", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_engine"}, At: func(g *GPU) *Reading { return &g.EngineMem },
	},
	{
		Key: "mem_others", JSON: "others_memory_bytes", Metric: "llmtop.gpu.memory.others", Unit: "By",
		Name: "GPU memory of others", Help: "GPU memory of other processes", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_others"}, At: func(g *GPU) *Reading { return &g.OthersMem },
	},
	{
		Key: "mem_reserved", JSON: "memory_reserved_bytes", Metric: "llmtop.gpu.memory.reserved", Unit: "By",
		Name: "GPU memory reserved", Help: "GPU memory that the driver keeps for itself", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_reserved"}, At: func(g *GPU) *Reading { return &g.MemReserved },
	},
	{
		Key: "mem_total", JSON: "memory_bytes", Metric: "llmtop.gpu.memory.limit", Unit: "By",
		Name: "GPU memory limit", Help: "GPU memory", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_limit"}, At: func(g *GPU) *Reading { return &g.MemTotal },
	},
	{
		Key: "mem_bandwidth", JSON: "memory_bandwidth_bytes_per_s", Metric: "llmtop.gpu.memory.bandwidth_limit", Unit: "By/s",
		Name: "GPU memory bandwidth", Help: "highest bandwidth of GPU memory", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_bandwidth"}, At: func(g *GPU) *Reading { return &g.MemBandwidth },
	},
	{
		Key: "dram", JSON: "dram_bandwidth_share", Metric: "llmtop.gpu.dram.usage", Unit: "1",
		Name: "DRAM bandwidth", Help: "bytes that GPU memory moved / what it can move", fold: mean, folded: "mean of all GPUs",
		Own: Series{GaugeGPUDRAM, "GPU DRAM", "gpu_dram"}, At: func(g *GPU) *Reading { return &g.DRAM },
	},
	{
		Key: "sm", JSON: "sm_active_share", Metric: "llmtop.gpu.sm.active", Unit: "1",
		Name: "SM active", Help: "time in which a multiprocessor (SM) had work / wall clock, mean over all SMs", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_sm"}, At: func(g *GPU) *Reading { return &g.SM },
	},
	{
		Key: "occupancy", JSON: "sm_occupancy", Metric: "llmtop.gpu.sm.occupancy", Unit: "1",
		Name: "SM occupancy", Help: "warps on the multiprocessors (SMs) / warps that they can hold", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_occupancy"}, At: func(g *GPU) *Reading { return &g.Occupancy },
	},
	{
		Key: "tensor", JSON: "tensor_active_share", Metric: "llmtop.gpu.tensor.active", Unit: "1",
		Name: "tensor cores active", Help: "time in which the tensor cores computed / wall clock", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_tensor"}, At: func(g *GPU) *Reading { return &g.Tensor },
	},
	{
		Key: "power", JSON: "power_w", Metric: "llmtop.gpu.power", Unit: "W",
		Name: "GPU power", Help: "power draw of the GPU", fold: sum, folded: "sum of all GPUs",
		Own: Series{GaugeGPUPower, "GPU power", "gpu_power"}, At: func(g *GPU) *Reading { return &g.Power },
	},
	{
		Key: "power_limit", JSON: "power_limit_w", Metric: "llmtop.gpu.power_limit", Unit: "W",
		Name: "GPU power limit", Help: "power at which the GPU lowers its clocks", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_power_limit"}, At: func(g *GPU) *Reading { return &g.PowerLimit },
	},
	{
		Key: "energy", JSON: "energy_j", Metric: "llmtop.gpu.energy", Unit: "J", Sum: true,
		Name: "GPU energy", Help: "energy of the GPU since the driver was loaded", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_energy"}, At: func(g *GPU) *Reading { return &g.Energy },
	},
	{
		Key: "hz", JSON: "clock_hz", Metric: "llmtop.gpu.clock", Unit: "Hz",
		Name: "GPU clock", Help: "clock of the GPU", fold: mean, folded: "mean of all GPUs",
		Own: Series{GaugeGPUClock, "GPU clock", "gpu_clock"}, At: func(g *GPU) *Reading { return &g.Clock },
	},
	{
		Key: "max_hz", JSON: "clock_max_hz", Metric: "llmtop.gpu.clock_max", Unit: "Hz",
		Name: "highest GPU clock", Help: "highest clock of the GPU", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_clock_max"}, At: func(g *GPU) *Reading { return &g.MaxClock },
	},
	{
		Key: "mem_hz", JSON: "memory_clock_hz", Metric: "llmtop.gpu.memory.clock", Unit: "Hz",
		Name: "GPU memory clock", Help: "clock of GPU memory", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_clock"}, At: func(g *GPU) *Reading { return &g.MemClock },
	},
	{
		Key: "mem_max_hz", JSON: "memory_clock_max_hz", Metric: "llmtop.gpu.memory.clock_max", Unit: "Hz",
		Name: "highest GPU memory clock", Help: "highest clock of GPU memory", fold: mean, folded: "mean of all GPUs",
		Own: Series{NoGauge, "", "gpu_memory_clock_max"}, At: func(g *GPU) *Reading { return &g.MaxMemClock },
	},
	{
		Key: "capped", JSON: "power_capped", Metric: "llmtop.gpu.power_capped", Unit: "1",
		Name: "power cap", Help: "1 if the clocks of the GPU are lowered because of its power limit, else 0", fold: mean, folded: "share of all GPUs",
		Own: Series{NoGauge, "", "gpu_power_capped"}, At: func(g *GPU) *Reading { return &g.PowerCapped },
	},
	{
		Key: "hot", JSON: "thermally_slowed", Metric: "llmtop.gpu.thermally_slowed", Unit: "1",
		Name: "thermal slowdown", Help: "1 if the clocks of the GPU are lowered because of its temperature, else 0", fold: mean, folded: "share of all GPUs",
		Own: Series{NoGauge, "", "gpu_thermally_slowed"}, At: func(g *GPU) *Reading { return &g.ThermallySlowed },
	},
	{
		Key: "braked", JSON: "power_braked", Metric: "llmtop.gpu.power_braked", Unit: "1",
		Name: "power brake", Help: "1 if the clocks of the GPU are lowered by the power supply, else 0", fold: mean, folded: "share of all GPUs",
		Own: Series{NoGauge, "", "gpu_power_braked"}, At: func(g *GPU) *Reading { return &g.PowerBraked },
	},
	{
		Key: "temperature", JSON: "temperature_c", Metric: "llmtop.gpu.temperature", Unit: "Cel",
		Name: "GPU heat", Help: "temperature of the GPU", fold: slices.Max[[]float64], folded: "hottest GPU",
		Own: Series{GaugeGPUTemperature, "GPU heat", "gpu_temperature"}, At: func(g *GPU) *Reading { return &g.Temperature },
	},
	{
		Key: "mem_temperature", JSON: "memory_temperature_c", Metric: "llmtop.gpu.memory.temperature", Unit: "Cel",
		Name: "GPU memory heat", Help: "temperature of GPU memory", fold: slices.Max[[]float64], folded: "hottest GPU",
		Own: Series{NoGauge, "", "gpu_memory_temperature"}, At: func(g *GPU) *Reading { return &g.MemTemperature },
	},
	{
		Key: "pcie_in", JSON: "pcie_received_bytes_per_s", Metric: "llmtop.gpu.pcie.received", Unit: "By/s",
		Name: "PCIe to the GPU", Help: "bytes that the GPU received over PCIe", fold: sum, folded: "sum of all GPUs",
		Own: Series{GaugePCIeIn, "PCIe to GPU", "gpu_pcie_in"}, At: func(g *GPU) *Reading { return &g.PCIeIn },
	},
	{
		Key: "pcie_out", JSON: "pcie_sent_bytes_per_s", Metric: "llmtop.gpu.pcie.sent", Unit: "By/s",
		Name: "PCIe from the GPU", Help: "bytes that the GPU sent over PCIe", fold: sum, folded: "sum of all GPUs",
		Own: Series{GaugePCIeOut, "PCIe from GPU", "gpu_pcie_out"}, At: func(g *GPU) *Reading { return &g.PCIeOut },
	},
	{
		Key: "nvlink_in", JSON: "nvlink_received_bytes_per_s", Metric: "llmtop.gpu.nvlink.received", Unit: "By/s",
		Name: "NVLink to the GPU", Help: "bytes that the GPU received over NVLink", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_nvlink_in"}, At: func(g *GPU) *Reading { return &g.NVLinkIn },
	},
	{
		Key: "nvlink_out", JSON: "nvlink_sent_bytes_per_s", Metric: "llmtop.gpu.nvlink.sent", Unit: "By/s",
		Name: "NVLink from the GPU", Help: "bytes that the GPU sent over NVLink", fold: sum, folded: "sum of all GPUs",
		Own: Series{NoGauge, "", "gpu_nvlink_out"}, At: func(g *GPU) *Reading { return &g.NVLinkOut },
	},
}
