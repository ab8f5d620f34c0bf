package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Energy counts the energy of the processors, with the RAPL counters of Intel and AMD in the kernel's powercap
// interface, and of NVIDIA GPUs, with NVML. RAPL counters must be read before they wrap, which takes at least a minute.
type Energy struct {
	stop   chan struct{}
	joined sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	zones   []zone
	joules  float64
	missing string // why there are no zones

	gpus   *nvml // nil: GPUs are not counted
	noGPUs string

	powered float64 // joules at the last call of power
}

// zone is the counter of one processor package, in µJ.
type zone struct {
	path string
	last uint64
	wrap uint64 // range of the counter
}

// powercap is the folder of the counters on Linux.
const powercap = "/sys/class/powercap"

// energyInterval is the interval of reading the counters.
const energyInterval = 10 * time.Second

// StartEnergy starts to count. The caller must call Stop, even if there is no source.
func StartEnergy() *Energy { return startEnergy(powercap, nvmlLibrary, energyInterval) }

func startEnergy(root, library string, rest time.Duration) *Energy {
	e := &Energy{stop: make(chan struct{})}
	e.zones, e.missing = findZones(root)
	e.gpus, e.noGPUs = gpuEnergy(library)
	if len(e.zones) == 0 {
		return e
	}
	e.joined.Go(func() {
		tick := time.NewTicker(rest)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				e.read()
			case <-e.stop:
				return
			}
		}
	})
	return e
}

// meterEnergy returns a count that is read only by calls of power.
func meterEnergy(root string) *Energy {
	e := &Energy{}
	e.zones, e.missing = findZones(root)
	return e
}

// power returns the mean power of the processors since the last call, in W.
func (e *Energy) power(since time.Duration) event.Reading {
	if e == nil {
		return event.Absent(event.NotReported)
	}
	if len(e.zones) > 0 {
		e.read()
	}
	switch {
	case strings.HasSuffix(e.missing, notPermitted):
		return event.Absent(event.NotPermitted)
	case len(e.zones) == 0:
		return event.Absent(event.NotReported)
	case since <= 0:
		return event.Absent(event.NotYet)
	}
	spent := e.joules - e.powered
	e.powered = e.joules
	return measured(spent / since.Seconds())
}

// notPermitted ends the reason if only the administrator may read the counters, as on most machines.
const notPermitted = "not permitted"

// findZones lists the zones of the packages, which include their subzones. If none exist, it returns the reason.
func findZones(root string) (zones []zone, missing string) {
	paths, _ := filepath.Glob(filepath.Join(root, "intel-rapl:*")) // the pattern is well-formed
	missing = "no RAPL counters"
	for _, path := range paths {
		if strings.Count(filepath.Base(path), ":") != 1 { // a subzone of a package
			continue
		}
		wrap, err := readCounter(filepath.Join(path, "max_energy_range_uj"))
		if err != nil {
			missing = "RAPL counters: " + reason(err)
			continue
		}
		z := zone{path: filepath.Join(path, "energy_uj"), wrap: wrap}
		if z.last, err = readCounter(z.path); err != nil {
			missing = "RAPL counters: " + reason(err)
			continue
		}
		zones = append(zones, z)
	}
	return zones, missing
}

func reason(err error) string {
	if os.IsPermission(err) {
		return notPermitted
	}
	return "not readable"
}

func readCounter(path string) (uint64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
}

// read adds the increase of the counters since the last read. If a counter becomes unreadable, counting ends: a sum
// that lacks a package would be wrong.
func (e *Energy) read() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.zones {
		z := &e.zones[i]
		now, err := readCounter(z.path)
		if err != nil {
			e.zones, e.missing = nil, "RAPL counters: "+reason(err)
			return
		}
		spent := now - z.last
		if now < z.last {
			spent = now + z.wrap - z.last
		}
		e.joules += float64(spent) / 1e6
		z.last = now
	}
}

// Stop ends the count and returns the energy in J, with the names of its sources. Without a source, it returns the
// reasons.
func (e *Energy) Stop() (joules float64, source, missing string) {
	close(e.stop)
	e.joined.Wait()
	e.read()
	var sources []string
	if len(e.zones) > 0 {
		joules, sources = e.joules, append(sources, "RAPL")
	}
	if e.gpus != nil {
		if v, ok := e.gpus.stop(); ok {
			joules, sources = joules+v, append(sources, "NVML")
		} else {
			e.noGPUs = "NVML: the counters went away"
		}
	}
	if len(sources) == 0 {
		return 0, "", e.missing + "; " + e.noGPUs
	}
	return joules, strings.Join(sources, " + "), ""
}
