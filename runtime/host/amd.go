package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// card matches a device, but not its outputs such as card0-DP-1.
var card = regexp.MustCompile(`^card[0-9]{1,3}$`)

// amd reads AMD GPUs from the files of the amdgpu driver below root/sys/class/drm.
type amd struct{ drmCards }

func openAMD(context.Context) (gpuReader, error) { return foundGPUs(&amd{drmCards{root: "/"}}) }

// drmCards are the GPUs of some drivers below root/sys/class/drm. One that is removed keeps its place.
type drmCards struct {
	root string
	dirs []string
	last []event.GPU
}

func (*drmCards) close() {}

// readCards reads the cards that are ours, and those that were.
func (c *drmCards) readCards(ours func(dir string) bool, read func(dir string) event.GPU) ([]event.GPU, []event.GPUProcess, error) {
	for _, dir := range cards(c.root) {
		if !slices.Contains(c.dirs, dir) && ours(dir) {
			c.dirs, c.last = append(c.dirs, dir), append(c.last, event.GPU{})
		}
	}
	gone, gpus := 0, unread(c.last)
	for i, dir := range c.dirs {
		if !ours(dir) {
			gone++
			continue
		}
		gpus[i] = read(dir)
		c.last[i] = gpus[i]
	}
	if gone == len(c.dirs) {
		return nil, nil, errNoGPU
	}
	return gpus, nil, nil
}

// foundGPUs returns a reader if it finds a GPU.
func foundGPUs(r gpuReader) (gpuReader, error) {
	if gpus, _, err := r.read(); err != nil || len(gpus) == 0 {
		return nil, errNoGPU
	}
	return r, nil
}

// read implements gpuReader. Other drivers have no such file.
func (r *amd) read() ([]event.GPU, []event.GPUProcess, error) {
	return r.readCards(func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "gpu_busy_percent"))
		return err == nil
	}, amdCard)
}

// cards returns the folders of the GPUs of all drivers, up to maxGPUs.
func cards(root string) (dirs []string) {
	drm := filepath.Join(root, "sys/class/drm")
	entries, _ := os.ReadDir(drm) // other systems have none
	for _, e := range entries {
		if card.MatchString(e.Name()) && len(dirs) < maxGPUs {
			dirs = append(dirs, filepath.Join(drm, e.Name(), "device"))
		}
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return len(a) - len(b) }) // card2 before card10
	return dirs
}

// property returns what the kernel says of a device: DRIVER, and PCI_SLOT_NAME and PCI_ID if it is on the PCI bus.
func property(dir, name string) string {
	raw, _ := os.ReadFile(filepath.Join(dir, "uevent"))
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// computing are the drivers of GPUs that compute; others only drive displays.
var computing = []string{"amdgpu", "radeon", "i915", "xe", "nvidia", "nouveau", "asahi", "panfrost", "panthor", "msm_dpu", "v3d"}

// noReadings explains why no GPU is read: the machine has none, or its driver has no readings.
func noReadings(root string) error {
	for _, dir := range cards(root) {
		if driver := property(dir, "DRIVER"); slices.Contains(computing, driver) {
			return fmt.Errorf("GPU without readings: %s, driver %s", filepath.Base(filepath.Dir(dir)), driver)
		}
	}
	return errNoGPU
}

// sensors returns the folder of a device's sensors: those that are named like its driver, as i915 has more for each tile.
func sensors(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "hwmon/hwmon*"))
	if err != nil || len(found) == 0 {
		return dir
	}
	driver := property(dir, "DRIVER")
	for _, hwmon := range found {
		if name, err := os.ReadFile(filepath.Join(hwmon, "name")); err == nil && strings.TrimSpace(string(name)) == driver {
			return hwmon
		}
	}
	return found[0]
}

func amdCard(dir string) event.GPU {
	name := filepath.Base(filepath.Dir(dir))
	if product, err := os.ReadFile(filepath.Join(dir, "product_name")); err == nil && len(product) > 0 {
		name = strings.TrimSpace(string(product))
	}
	g := event.GPU{Name: name, Address: property(dir, "PCI_SLOT_NAME"), Util: fileQuantity(filepath.Join(dir, "gpu_busy_percent"), 0.01)}
	if g.Util.Origin == event.NotPermitted { // of a GPU that is suspended
		g.Util = event.Absent(event.NotReported)
		return g
	}
	hwmon := sensors(dir)
	power := fileQuantity(filepath.Join(hwmon, "power1_average"), 1e-6)
	if !power.OK() { // newer kernels report the instantaneous value
		power = fileQuantity(filepath.Join(hwmon, "power1_input"), 1e-6)
	}
	g.Power = power
	g.MemBusy = fileQuantity(filepath.Join(dir, "mem_busy_percent"), 0.01)
	g.MemUsed = fileQuantity(filepath.Join(dir, "mem_info_vram_used"), 1)
	g.MemTotal = fileQuantity(filepath.Join(dir, "mem_info_vram_total"), 1)
	g.PowerLimit = firstLimit(1e-6, filepath.Join(hwmon, "power1_cap"))
	g.Temperature = fileQuantity(filepath.Join(hwmon, "temp1_input"), 1e-3)
	g.MemTemperature = fileQuantity(filepath.Join(hwmon, "temp3_input"), 1e-3)
	g.Clock = fileQuantity(filepath.Join(hwmon, "freq1_input"), 1)
	g.MemClock = fileQuantity(filepath.Join(hwmon, "freq2_input"), 1)
	mapped := fileQuantity(filepath.Join(dir, "mem_info_gtt_total"), 1)
	if integrated(dir, mapped.OK() && g.MemTotal.V <= leastOwn) { // most of what it uses is mapped from the machine's memory
		g.Unified = true
		g.MemUsed, g.MemTotal = addKnown(g.MemUsed, fileQuantity(filepath.Join(dir, "mem_info_gtt_used"), 1)), addKnown(g.MemTotal, mapped)
	}
	return g
}

// leastOwn is the memory in bytes that cards which compute have at least. APUs have 512 MiB by default.
const leastOwn = 1 << 30

// integrated reports whether a GPU is part of a processor (an APU): the format of its metrics is 2 or 3; if it has none, it
// has the sensor of the northbridge's voltage, which only APUs have, or little memory of its own.
func integrated(dir string, little bool) bool {
	if raw, err := os.ReadFile(filepath.Join(dir, "gpu_metrics")); err == nil && len(raw) >= 4 { // u16 size, u8 format, u8 content
		return raw[2] == 2 || raw[2] == 3
	}
	label, _ := os.ReadFile(filepath.Join(sensors(dir), "in1_label"))
	return little || strings.TrimSpace(string(label)) == "vddnb"
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
