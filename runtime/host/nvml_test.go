package host

import (
	"math"
	"strings"
	"testing"
	"time"
)

// fakeGPUs returns the functions of a library with one GPU per counter, in mJ.
func fakeGPUs(counters ...*uint64) (lib *nvmlFunctions, closed *int) {
	closed = new(int)
	return &nvmlFunctions{
		start: func() int32 { return nvmlSuccess },
		count: func(n *uint32) int32 {
			*n = uint32(len(counters))
			return nvmlSuccess
		},
		handle: func(i uint32, device *uintptr) int32 {
			*device = uintptr(i)
			return nvmlSuccess
		},
		total: func(device uintptr, millijoules *uint64) int32 {
			if counters[device] == nil {
				return nvmlNotSupported
			}
			*millijoules = *counters[device]
			return nvmlSuccess
		},
		close: func() int32 {
			*closed++
			return nvmlSuccess
		},
	}, closed
}

func TestEnergyOfGPUs(t *testing.T) {
	one, two := uint64(5_000_000), uint64(100)
	lib, closed := fakeGPUs(&one, &two)
	g, missing := countGPUs(lib)
	if missing != "" {
		t.Fatal(missing)
	}
	one, two = one+2_500, two+500
	if joules, ok := g.stop(); !ok || math.Abs(joules-3) > 1e-12 || *closed != 1 {
		t.Errorf("%v J, %v, closed %d times, want 3 J", joules, ok, *closed)
	}
	g, _ = countGPUs(lib)
	one = 0
	if joules, ok := g.stop(); ok {
		t.Errorf("a counter that was reset: %v J", joules)
	}
}

func TestGPUsWithoutEnergy(t *testing.T) {
	one := uint64(1)
	none, closed := fakeGPUs()
	old, closedToo := fakeGPUs(&one, nil)
	for lib, want := range map[*nvmlFunctions]string{
		none: "NVML: no GPU", old: "NVML: a GPU without an energy counter", {start: func() int32 { return 9 }}: "NVML: error 9",
	} {
		if g, missing := countGPUs(lib); g != nil || missing != want {
			t.Errorf("%q, want %q", missing, want)
		}
	}
	if *closed != 1 || *closedToo != 1 {
		t.Error("a library was left open")
	}
}

// TestEnergyOfBoth: the energy of processors and GPUs is added, and both sources are named.
func TestEnergyOfBoth(t *testing.T) {
	root, set := rapl(t)
	e := startEnergy(root, "missing.so", time.Hour)
	counter := uint64(7)
	lib, _ := fakeGPUs(&counter)
	e.gpus, e.noGPUs = countGPUs(lib)
	counter += 1_500
	set("intel-rapl:0/energy_uj", 9_500_000)
	if joules, source, _ := e.Stop(); math.Abs(joules-2) > 1e-9 || source != "RAPL + NVML" {
		t.Errorf("%v J of %s, want 2 of both", joules, source)
	}
	alone := startEnergy(t.TempDir(), "missing.so", time.Hour)
	alone.gpus, alone.noGPUs = countGPUs(lib)
	counter = 0
	if _, source, missing := alone.Stop(); source != "" || !strings.Contains(missing, "went away") {
		t.Errorf("%q, %q", source, missing)
	}
}
