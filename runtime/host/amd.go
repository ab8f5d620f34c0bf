package host

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// noGPU is the reason if neither nvidia-smi nor the kernel reports a GPU.
const noGPU = "no GPU"

// card matches a device, but not its outputs such as card0-DP-1.
var card = regexp.MustCompile(`^card[0-9]{1,3}$`)

// readAMD reads the amdgpu driver's files below root/sys/class/drm. Other systems and drivers have no such files.
func readAMD(root string) (gpus []event.GPU) {
	drm := filepath.Join(root, "sys/class/drm")
	entries, err := os.ReadDir(drm)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		dir := filepath.Join(drm, e.Name(), "device")
		if !card.MatchString(e.Name()) || len(gpus) == maxGPUs {
			continue
		}
		busy := fileQuantity(filepath.Join(dir, "gpu_busy_percent"), 0.01)
		if !busy.OK() {
			continue
		}
		gpus = append(gpus, amd(dir, e.Name(), busy))
	}
	return gpus
}

func amd(dir, name string, busy event.Reading) event.GPU {
	if product, err := os.ReadFile(filepath.Join(dir, "product_name")); err == nil && len(product) > 0 {
		name = strings.TrimSpace(string(product))
	}
	sensors := dir
	if found, err := filepath.Glob(filepath.Join(dir, "hwmon/hwmon*")); err == nil && len(found) > 0 {
		sensors = found[0]
	}
	power := fileQuantity(filepath.Join(sensors, "power1_average"), 1e-6)
	if !power.OK() { // newer kernels report the instantaneous value
		power = fileQuantity(filepath.Join(sensors, "power1_input"), 1e-6)
	}
	return event.GPU{
		Name: name, Util: busy, Power: power,
		MemUsed:     fileQuantity(filepath.Join(dir, "mem_info_vram_used"), 1),
		MemTotal:    fileQuantity(filepath.Join(dir, "mem_info_vram_total"), 1),
		Temperature: fileQuantity(filepath.Join(sensors, "temp1_input"), 1e-3),
		Clock:       fileQuantity(filepath.Join(sensors, "freq1_input"), 1),
	}
}

// fileQuantity returns the number in a file, times unit.
func fileQuantity(name string, unit float64) event.Reading {
	raw, err := os.ReadFile(name)
	if err != nil {
		return readFailure(err)
	}
	return quantity(string(raw), unit)
}

// quantity parses a non-negative number, times unit; it is absent for any other text.
func quantity(text string, unit float64) event.Reading {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if r := measured(v * unit); err == nil && r.OK() {
		return r
	}
	return event.Absent(event.NotReported)
}

// readFailure converts the error of reading a file to an absent reading.
func readFailure(err error) event.Reading {
	if os.IsPermission(err) {
		return event.Absent(event.NotPermitted)
	}
	return event.Absent(event.NotReported)
}
