package host

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// intel reads Intel GPUs from the files of the i915 and xe drivers below root/sys/class/drm. Their busy time is counted for
// each process only; the performance counters of the whole GPU need privileges.
type intel struct {
	drmCards
	energy map[string]event.Reading // J of each device at the last reading
	at     time.Time
}

func openIntel(context.Context) (gpuReader, error) {
	return foundGPUs(&intel{drmCards: drmCards{root: "/"}, energy: make(map[string]event.Reading)})
}

// read implements gpuReader.
func (r *intel) read() ([]event.GPU, []event.GPUProcess, error) {
	now := time.Now()
	since := now.Sub(r.at).Seconds()
	r.at = now
	return r.readCards(func(dir string) bool {
		driver := property(dir, "DRIVER")
		found := driver == "i915" || driver == "xe"
		if !found {
			delete(r.energy, dir) // of one that was removed
		}
		return found
	}, func(dir string) event.GPU { return r.card(dir, since) })
}

// integratedAddress is the place of the GPU in every Intel processor.
const integratedAddress = "0000:00:02.0"

func (r *intel) card(dir string, since float64) event.GPU {
	hwmon := sensors(dir)
	name := "Intel GPU"
	if _, id, ok := strings.Cut(property(dir, "PCI_ID"), ":"); ok {
		name += " 0x" + strings.ToLower(id)
	}
	g := event.GPU{
		Name: name, Address: property(dir, "PCI_SLOT_NAME"),
		PowerLimit:  firstLimit(1e-6, filepath.Join(hwmon, "power1_max"), filepath.Join(hwmon, "power2_max")),
		Temperature: firstQuantity(1e-3, filepath.Join(hwmon, "temp1_input"), filepath.Join(hwmon, "temp2_input")),
		Energy:      firstQuantity(1e-6, filepath.Join(hwmon, "energy1_input"), filepath.Join(hwmon, "energy2_input")),
		Clock:       firstQuantity(1e6, filepath.Join(dir, "../gt_act_freq_mhz"), filepath.Join(dir, "tile0/gt0/freq0/act_freq")),
		MaxClock:    firstQuantity(1e6, filepath.Join(dir, "../gt_RP0_freq_mhz"), filepath.Join(dir, "tile0/gt0/freq0/rp0_freq")),
	}
	if property(dir, "DRIVER") == "xe" {
		g.MemTemperature = fileQuantity(filepath.Join(hwmon, "temp3_input"), 1e-3)
	}
	g.Unified = g.Address == integratedAddress
	switch before, seen := r.energy[dir]; {
	case !g.Energy.OK():
		g.Power = g.Energy
	case !seen:
		g.Power = event.Absent(event.NotYet)
	case before.OK() && since > 0:
		if g.Power = event.Absent(event.NotYet); g.Energy.V >= before.V { // else the driver was loaded again
			g.Power = measured((g.Energy.V - before.V) / since)
		}
	}
	r.energy[dir] = g.Energy
	return g
}

// firstQuantity returns the number in the first of the files that has one, times unit.
func firstQuantity(unit float64, names ...string) (r event.Reading) {
	for _, name := range names {
		if r = fileQuantity(name, unit); r.OK() {
			break
		}
	}
	return r
}

// firstLimit is firstQuantity for limits: 0 means no limit.
func firstLimit(unit float64, names ...string) event.Reading {
	for _, name := range names {
		if r := fileQuantity(name, unit); r.V > 0 {
			return r
		}
	}
	return event.Absent(event.NotReported)
}
