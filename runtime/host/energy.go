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

// Energy counts what a machine's processors use, by Intel's and AMD's RAPL counters in the kernel's powercap interface, and what NVIDIA's GPUs use, by
// NVML's. Those of RAPL must be read more often than they wrap, which takes a minute at the least.
type Energy struct {
	stop   chan struct{}
	joined sync.WaitGroup

	mu      sync.Mutex // guards what follows
	zones   []zone
	joules  float64
	missing string // why there is no source

	gpus   *nvml // nil: none are counted
	noGPUs string

	told float64 // joules at the last call of power
}

// zone is one package's counter, in µJ.
type zone struct {
	path string
	last uint64
	wrap uint64 // the counter's range
}

// powercap is where Linux has the counters.
const powercap = "/sys/class/powercap"

// energyRest is how often counters are read.
const energyRest = 10 * time.Second

// StartEnergy begins to count. Stop ends it, also where there is no source.
func StartEnergy() *Energy { return startEnergy(powercap, nvmlLibrary, energyRest) }

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

// meterEnergy is a count that goes on only as it is asked for its power.
func meterEnergy(root string) *Energy {
	e := &Energy{}
	e.zones, e.missing = findZones(root)
	return e
}

// power is the mean power, in W, of the processors over the time since the last call.
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
	spent := e.joules - e.told
	e.told = e.joules
	return event.Of(spent / since.Seconds())
}

// notPermitted ends the reason of counters that only the administrator may read, as they are on most machines.
const notPermitted = "not permitted"

// findZones lists the packages' zones, which hold those below them; or says why there are none.
func findZones(root string) (zones []zone, missing string) {
	paths, _ := filepath.Glob(filepath.Join(root, "intel-rapl:*")) // the pattern is well-formed
	missing = "no RAPL counters"
	for _, path := range paths {
		if strings.Count(filepath.Base(path), ":") != 1 { // a part of a package
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

// read adds what the counters have counted since they were read last. One that cannot be read any more ends the count: a sum that lacks a
// package would be wrong.
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

// Stop ends the count and returns it, in J, with the names of its sources; "" and the reasons where there is none.
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
