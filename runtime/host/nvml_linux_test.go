//go:build !nollama && (amd64 || arm64)

package host

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// fakeNVML builds the library of testdata/nvml with definitions such as "GPUS=2".
func fakeNVML(t testing.TB, definitions ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to build a shared library")
	}
	lib := filepath.Join(t.TempDir(), nvmlLibrary)
	args := []string{"-shared", "-fPIC", "-o", lib, "testdata/nvml/nvml.c"}
	for _, d := range definitions {
		args = append(args, "-D"+d)
	}
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lib
}

// openFake opens the GPUs of a fake library.
func openFake(t *testing.T, definitions ...string) *nvidia {
	t.Helper()
	lib, err := loadNVML(fakeNVML(t, definitions...))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newNVIDIA(lib)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// readRates returns readings that have rates, with the shares of this process.
func readRates(t *testing.T, r *nvidia) *event.Host {
	t.Helper()
	var shares gpuShares
	h := new(event.Host)
	for range 4 {
		var err error
		if h.GPUs, h.GPUProcesses, err = r.read(); err != nil {
			t.Fatal(err)
		}
		for _, d := range r.devices {
			r.visit(d)
		}
	}
	shares.set(h, []int{os.Getpid()})
	return h
}

func TestEnergyByNVML(t *testing.T) {
	g, missing := gpuEnergy(fakeNVML(t))
	if g == nil {
		t.Fatal(missing)
	}
	if joules, ok := g.stop(); !ok || joules != 0.25 {
		t.Errorf("%v J, %v, want 0.25", joules, ok)
	}
	if _, missing := gpuEnergy(filepath.Join(t.TempDir(), "none.so")); missing != "no NVML" {
		t.Errorf("without a library: %q", missing)
	}
}

// TestNVML reads every row of the catalogue from a fake library, and compares it with what that reports.
func TestNVML(t *testing.T) {
	r := openFake(t, "GPUS=8")
	h := readRates(t, r)
	if len(h.GPUs) != 8 || h.GPUs[0].Name != "NVIDIA H100 80GB HBM3" {
		t.Fatalf("%+v, want eight GPUs", h.GPUs)
	}
	busy, other := &h.GPUs[0], &h.GPUs[7]
	const mib = 1 << 20
	for _, want := range []struct {
		key         string
		busy, other float64
	}{
		{"util", .91, .33},
		{"engine", .85, 0},
		{"others", 0, .33},
		{"mem_busy", .45, .16},
		{"mem_used", 71e9, 1e6},
		{"mem_engine", 70e9, 0},
		{"mem_others", 0, 9e5},
		{"mem_reserved", 500 * mib, 500 * mib},
		{"mem_total", 81559 * mib, 81559 * mib},
		{"mem_bandwidth", 3.35232e12, 3.35232e12},
		{"dram", .715, 0},
		{"sm", .88, 0},
		{"occupancy", .21, 0},
		{"tensor", .04, 0},
		{"power", 698.123, 71.234},
		{"power_limit", 700, 700},
		{"energy", 123456789.262, .25},
		{"hz", 1755e6, 1755e6},
		{"max_hz", 1980e6, 1980e6},
		{"mem_hz", 2619e6, 2619e6},
		{"mem_max_hz", 2619e6, 2619e6},
		{"capped", 1, 0},
		{"hot", 0, 0},
		{"braked", 0, 0},
		{"temperature", 36, 43},
		{"mem_temperature", 38, 38},
		{"pcie_in", 268 * mib, 0},
		{"pcie_out", 68.5 * mib, 0},
	} {
		found := false
		for i := range event.GPUFields {
			if f := &event.GPUFields[i]; f.Key == want.key {
				found = true
				for g, v := range map[*event.GPU]float64{busy: want.busy, other: want.other} {
					if got := f.At(g); !got.OK() || math.Abs(got.V-v) > 1e-9*math.Max(1, v) {
						t.Errorf("%s is %+v, want %v", want.key, got, v)
					}
				}
			}
		}
		if !found {
			t.Errorf("no row %s", want.key)
		}
	}
	if h.GPUs[1].ThermallySlowed.V != 1 || !busy.NVLinkIn.OK() || !(busy.NVLinkIn.V > 0) {
		t.Errorf("heat and NVLink: %+v", h.GPUs[1])
	}
}

// TestNVMLSpecialCases: what a GPU does not have is absent.
func TestNVMLSpecialCases(t *testing.T) {
	t.Run("unified memory", func(t *testing.T) {
		g := readRates(t, openFake(t, "UNIFIED=0")).GPUs[0]
		if g.MemTotal.OK() || g.MemUsed.OK() || !g.EngineMem.OK() || !g.Util.OK() {
			t.Errorf("%+v", g)
		}
	})
	t.Run("MIG", func(t *testing.T) {
		gpus := readRates(t, openFake(t, "GPUS=2", "MIG=0")).GPUs
		if len(gpus) != 3 || gpus[0].Name != "NVIDIA H100 80GB HBM3 MIG 3g.40gb" || gpus[1].Util.OK() || gpus[1].EngineUtil.OK() || !gpus[1].EngineMem.OK() || gpus[1].Power.OK() || gpus[0].MemTotal.V != 40326<<20 || !gpus[2].Util.OK() {
			t.Errorf("%+v, want two instances and a GPU", gpus)
		}
	})
	t.Run("before Hopper", func(t *testing.T) {
		g := readRates(t, openFake(t, "GPM=0")).GPUs[0]
		if g.SM.OK() || g.DRAM.OK() || g.PCIeIn != measured(5e6) || g.PCIeOut != measured(3e5) {
			t.Errorf("%+v", g)
		}
	})
	t.Run("one process after another", func(t *testing.T) {
		r := openFake(t)
		d := r.devices[0]
		g := event.GPU{Util: measured(.5), MemUsed: measured(3e9)}
		list := []event.GPUProcess{{PID: 9, Mem: measured(2.99e9)}}
		if r.listed(d, &g, list); list[0].Util != g.Util || !d.slow.alone {
			t.Errorf("one process: %+v", list)
		}
		r.visit(d)
		list = append(list, event.GPUProcess{PID: os.Getpid(), Mem: measured(1e6)})
		for range 3 {
			if r.listed(d, &g, list); list[0].Util.OK() {
				t.Errorf("two processes, before the driver's samples: %+v", list)
			}
			if d.usedUntil != 0 {
				break
			}
			r.visit(d)
		}
		r.visit(d)
		list = append(list, event.GPUProcess{PID: 7})
		if r.listed(d, &g, list); list[0].Util != measured(0) || math.Abs(list[1].Util.V-.85) > 1e-9 || list[2].Util.Origin != event.NotYet {
			t.Errorf("%+v, want 0, 0.85 and not yet", list)
		}
		list = list[:1]
		list[0].Mem = measured(1e9) // a process that the driver does not list
		if r.listed(d, &g, list); d.slow.alone {
			t.Error("memory of an unknown process")
		}
	})
	t.Run("removed", func(t *testing.T) {
		r := openFake(t, "GPUS=2", "LOST=0")
		readRates(t, r)
		h := readRates(t, r)
		if g := h.GPUs[0]; g != (event.GPU{Name: g.Name}) || !h.GPUs[1].Util.OK() {
			t.Errorf("%+v, want no readings of the first GPU", h.GPUs)
		}
		if event.GaugeGPUPower.Reading(h).OK() {
			t.Error("a sum without one of the GPUs")
		}
	})
	t.Run("all removed", func(t *testing.T) {
		r := openFake(t, "LOST=0")
		readRates(t, r)
		if _, _, err := r.read(); err == nil {
			t.Error("no error")
		}
	})
	t.Run("driver fails for a while", func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state")
		t.Setenv("NVML_STATE", state)
		r := openFake(t, "GPUS=2")
		readRates(t, r)
		for result, want := range map[string]string{"999": "NVML: error 999", "1": "NVML: error 1", "18": errNVMLVersion.Error()} {
			write(t, filepath.Dir(state), map[string]string{"state": result})
			if _, _, err := r.read(); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		write(t, filepath.Dir(state), map[string]string{"state": "0"})
		if gpus, _, err := r.read(); err != nil || !gpus[0].Util.OK() {
			t.Errorf("%v, %v", gpus, err)
		}
	})
	t.Run("no driver", func(t *testing.T) {
		lib, err := loadNVML(fakeNVML(t, "START=9"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newNVIDIA(lib); err == nil || err.Error() != "NVML: driver not loaded" {
			t.Errorf("%v", err)
		}
	})
}

// BenchmarkNVML measures the CPU time of readings of this machine's GPUs, or of eight made-up ones: then it is llmtop's part,
// without the driver's. "ms/s" is what readings of all GPUs and the slow calls cost together.
func BenchmarkNVML(b *testing.B) {
	lib, err := loadNVML(nvmlLibrary)
	if err != nil {
		if lib, err = loadNVML(fakeNVML(b, "GPUS=8")); err != nil {
			b.Fatal(err)
		}
	}
	r, err := newNVIDIA(lib)
	if err != nil {
		b.Skip(err)
	}
	defer r.close()
	for name, f := range map[string]func() error{
		"read": func() error { _, _, err := r.read(); return err },
		"slow": func() error { r.visit(r.devices[0]); return nil },
	} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			began := threadTime()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			took := float64(threadTime()-began) / float64(b.N)
			b.ReportMetric(took, "cpu-ns/op")
			every, share := gpuRest(time.Duration(took)), 0.
			if name == "slow" {
				every, share = gpuInterval/time.Duration(len(r.devices)), slowShare
			}
			ms := took / 1e6 / every.Seconds()
			if share > 0 {
				ms = min(ms, share*1e3)
			}
			b.ReportMetric(ms, "ms/s")
		})
	}
}

// TestAgainstSMI compares the readings of this machine's GPUs with those of nvidia-smi in the same second. With
// LLMTOP_GPU_PID, it logs the share of that process.
func TestAgainstSMI(t *testing.T) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		t.Skip("no nvidia-smi")
	}
	reader, err := openNVIDIA(t.Context())
	if err != nil {
		t.Skip(err)
	}
	defer reader.close()
	var shares gpuShares
	pid, _ := strconv.Atoi(os.Getenv("LLMTOP_GPU_PID"))
	for second := range 3 { // the first has no rates
		h := new(event.Host)
		if h.GPUs, h.GPUProcesses, err = reader.read(); err != nil {
			t.Fatal(err)
		}
		shares.set(h, []int{pid})
		const query = "utilization.gpu,memory.used,memory.total,power.draw,power.limit,temperature.gpu,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem"
		out, err := exec.Command(path, "--query-gpu="+query, "--format=csv,noheader,nounits").Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) != len(h.GPUs) {
			t.Fatalf("%d GPUs, nvidia-smi has %d", len(h.GPUs), len(lines))
		}
		for i, line := range lines {
			g, f := &h.GPUs[i], strings.Split(line, ",")
			for j, c := range []struct {
				name        string
				r           event.Reading
				unit, close float64 // of nvidia-smi; by how much both may differ
			}{
				{"busy", g.Util, .01, 1},
				{"memory", g.MemUsed, 1 << 20, 2 << 30},
				{"total", g.MemTotal, 1 << 20, 1 << 20},
				{"power", g.Power, 1, 400},
				{"limit", g.PowerLimit, 1, .1},
				{"temperature", g.Temperature, 1, 5},
				{"clock", g.Clock, 1e6, 2e9},
				{"highest clock", g.MaxClock, 1e6, 1},
				{"memory clock", g.MemClock, 1e6, 3e9},
				{"highest memory clock", g.MaxMemClock, 1e6, 1},
			} {
				want := quantity(f[j], c.unit)
				t.Logf("GPU %d %-20s %14g, nvidia-smi %14g", i, c.name, c.r.V, want.V)
				if c.r.OK() != want.OK() || math.Abs(c.r.V-want.V) > c.close {
					t.Errorf("GPU %d: %s is %+v, nvidia-smi has %+v", i, c.name, c.r, want)
				}
			}
		}
		if second == 2 {
			for i := range h.GPUs {
				for k := range event.GPUFields {
					t.Logf("GPU %d %-20s %+v", i, event.GPUFields[k].Key, *event.GPUFields[k].At(&h.GPUs[i]))
				}
			}
			t.Logf("processes: %+v", h.GPUProcesses)
		}
		time.Sleep(time.Second)
	}
}
