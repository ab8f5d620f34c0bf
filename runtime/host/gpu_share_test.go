package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestListedShares: memory and time are summed for the engine's processes and for all others, on every GPU.
func TestListedShares(t *testing.T) {
	h := &event.Host{GPUs: make([]event.GPU, 3), GPUProcesses: []event.GPUProcess{
		{GPU: 0, PID: 7, Mem: event.MeasuredValue(10), Util: event.MeasuredValue(.5)},
		{GPU: 0, PID: 8, Mem: event.MeasuredValue(5), Util: event.MeasuredValue(.25)},
		{GPU: 0, PID: 9, Mem: event.MeasuredValue(3), Util: event.MeasuredValue(.1)},
		{GPU: 1, PID: 9, Mem: event.MeasuredValue(4)},
	}}
	for i := range h.GPUs[:2] {
		h.GPUs[i].Util = event.MeasuredValue(.9)
	}
	shared := h.GPUs
	var s gpuShares
	if foreignPIDs() {
		t.Skip("the numbers of processes here are not those of the driver")
	}
	s.set(h, []int{7, 8})
	first, second, lost := h.GPUs[0], h.GPUs[1], h.GPUs[2]
	if first.EngineMem.V != 15 || first.EngineUtil.V != .75 || first.OthersMem.V != 3 || first.OthersUtil.V != .1 {
		t.Errorf("first GPU: %+v", first)
	}
	if !second.EngineMem.OK() || second.EngineMem.V != 0 || second.OthersMem.V != 4 || second.OthersUtil.OK() {
		t.Errorf("second GPU: %+v, want no busy time of others, since the driver has none of one of them", second)
	}
	if lost.EngineMem.OK() {
		t.Errorf("a GPU without readings: %+v", lost)
	}
	if shared[0].EngineMem.OK() {
		t.Error("the list of other events was changed")
	}
	s.set(h, nil)
	if g := h.GPUs[0]; g.EngineMem.OK() || g.OthersMem.OK() {
		t.Errorf("without a process: %+v", g)
	}
}

// TestDRMShares reads fdinfo of amdgpu, i915 and xe.
func TestDRMShares(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("symbolic links to devices need Linux")
	}
	const amdgpu = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t12\n"
	client := func(engine, cycles string) map[string]string {
		return map[string]string{
			"proc/7/fdinfo/4": amdgpu + "drm-memory-vram:\t1024 KiB\ndrm-memory-gtt: \t2048 KiB\ndrm-engine-compute:\t" + engine + " ns\n",
			"proc/7/fdinfo/5": amdgpu + "drm-memory-vram:\t1024 KiB\n", // the same client
			"proc/7/fdinfo/6": "pos:\t0\n",
			"proc/7/fdinfo/8": "drm-driver:\txe\ndrm-pdev:\t0000:00:02.0\ndrm-client-id:\t3\ndrm-resident-vram0:\t1 MiB\ndrm-memory-vram0:\t7 MiB\n" +
				"drm-resident-gtt:\t1 MiB\ndrm-cycles-ccs:\t" + cycles + "\ndrm-total-cycles-ccs:\t1000\ndrm-engine-capacity-ccs:\t2\n",
		}
	}
	root := tree(t, client("1000000000", "100"))
	link := func(fd, to string) {
		name := filepath.Join(root, "proc/7/fd", fd)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.Symlink(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("4", "/dev/dri/renderD128")
	link("5", "/dev/dri/renderD128")
	link("6", "/dev/null")
	link("8", "/dev/dri/renderD129")
	gpus := []event.GPU{{Address: "0000:03:00.0"}, {Address: "0000:00:02.0"}, {}}
	var c gpuShares
	c.shareDRM(root, gpus, []int{7})
	if gpus[0].EngineMem.V != 1<<20 || gpus[1].EngineMem.V != 1<<20 || gpus[0].EngineUtil.OK() || gpus[2].EngineMem.OK() {
		t.Fatalf("%+v", gpus)
	}
	gpus[0].Unified = true
	c.at = c.at.Add(-2 * time.Second)
	more := client("2000000000", "600")
	more["proc/7/fdinfo/8"] += "drm-total-cycles-ccs:\t2000\n"
	write(t, root, more)
	c.shareDRM(root, gpus, []int{7})
	if gpus[0].EngineMem.V != 3<<20 {
		t.Errorf("unified memory: %+v", gpus[0].EngineMem)
	}
	if u := gpus[0].EngineUtil; !u.OK() || u.V < .4 || u.V > .5 {
		t.Errorf("1 s in at least 2 s: %+v", u)
	}
	if u := gpus[1].EngineUtil; !u.OK() || u.V != .25 {
		t.Errorf("500 of 1000 cycles of two engines: %+v", u)
	}
	link("9", "/dev/kfd")
	c.shareDRM(root, gpus, []int{7})
	if gpus[0].EngineUtil.OK() {
		t.Error("busy time of a process that computes past the driver's clients")
	}
}

func FuzzFDInfo(f *testing.F) {
	f.Add("drm-pdev:\t0000:03:00.0\ndrm-client-id:\t12\ndrm-memory-vram:\t1024 KiB\ndrm-engine-gfx:\t12 ns\ndrm-engine-capacity-gfx:\t2\n")
	f.Add("drm-pdev: x\ndrm-client-id: 1\ndrm-resident-vram0: 1e300 MiB\ndrm-cycles-ccs: NaN\ndrm-total-cycles-ccs: -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "fdinfo")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		use := newDRMUse()
		use.add(Fields(name, "drm-"), make(map[[2]string]bool))
		for _, regions := range use.memory {
			for _, v := range regions {
				if v < 0 || v != v {
					t.Errorf("%q: %v bytes", text, v)
				}
			}
		}
	})
}

// failing is a reader whose driver goes away after some readings.
type failing struct{ left, closed int }

func (f *failing) close() { f.closed++ }
func (f *failing) read() ([]event.GPU, []event.GPUProcess, error) {
	if f.left--; f.left < 0 {
		return nil, nil, errors.New("gone " + strconv.Itoa(f.closed))
	}
	return []event.GPU{{Name: "card"}}, nil, nil
}

// TestDRMUncounted: what the driver does not count is absent.
func TestDRMUncounted(t *testing.T) {
	for text, counted := range map[string][2]bool{
		"drm-engine-render:\t1 ns\n":                                  {false, true},
		"drm-resident-system0:\t1 MiB\n":                              {true, false},
		"drm-resident-system0:\t1 furlong\ndrm-cycles-rcs:\t1\n":      {false, true},
		"drm-memory-vram:\t1 GiB\ndrm-engine-gfx:\t1 ns\n":            {true, true},
		"drm-engine-capacity-render:\t1\ndrm-total-system0:\t1 KiB\n": {false, false},
	} {
		name := filepath.Join(tree(t, map[string]string{"fdinfo": "drm-pdev:\t0000:00:02.0\ndrm-client-id:\t1\n" + text}), "fdinfo")
		use := newDRMUse()
		use.add(Fields(name, "drm-"), make(map[[2]string]bool))
		if blind := use.blind["0000:00:02.0"]; blind != [2]bool{!counted[0], !counted[1]} {
			t.Errorf("%q: memory and time uncounted: %v", text, blind)
		}
	}
}

// TestWatchGPUs: GPUs of two vendors keep their places, also without readings while one of the drivers is away.
func TestWatchGPUs(t *testing.T) {
	h := new(event.Host)
	w := &gpuWatch{began: time.Now(), found: make([]vendorGPUs, 2)}
	read := func() *event.Host {
		h = new(event.Host)
		w.read(h)
		return h
	}
	w.keep(&w.found[1], vendorGPUs{gpus: []event.GPU{{Name: "integrated", Address: "0000:00:02.0", Util: event.MeasuredValue(.1)}}})
	if read(); h.GPUs != nil || h.NoGPU != event.NotYet.String() {
		t.Errorf("before the first vendor has answered: %+v", h)
	}
	both := vendorGPUs{gpus: []event.GPU{{Name: "card", Util: event.MeasuredValue(.9)}}, users: []event.GPUProcess{{PID: 7}}}
	w.keep(&w.found[0], both)
	if read(); len(h.GPUs) != 2 || h.GPUs[0].Name != "card" || len(h.GPUProcesses) != 1 || h.NoGPU != "" {
		t.Errorf("both: %+v", h)
	}
	w.keep(&w.found[0], vendorGPUs{why: "driver not loaded"})
	if read(); len(h.GPUs) != 2 || h.GPUs[0] != (event.GPU{Name: "card"}) || !h.GPUs[1].Util.OK() || h.GPUProcesses != nil {
		t.Errorf("one driver away: %+v", h)
	}
	w.keep(&w.found[0], vendorGPUs{})
	w.keep(&w.found[1], vendorGPUs{why: noGPU})
	if read(); h.GPUs != nil || h.NoGPU != event.NotYet.String() {
		t.Errorf("a reader that has started: %+v", h)
	}
	w.keep(&w.found[0], both)
	w.keep(&w.found[0], vendorGPUs{why: "driver not loaded"})
	if read(); h.GPUs != nil || h.NoGPU != "driver not loaded" {
		t.Errorf("both away: %+v", h)
	}
	w.keep(&w.found[0], both)
	w.found[0].at = w.found[0].at.Add(-2 * gpuSilence)
	if read(); h.GPUs != nil || !strings.HasPrefix(h.NoGPU, "no data from the GPU driver since") {
		t.Errorf("a driver that hangs: %+v", h)
	}

	late := &gpuWatch{began: time.Now().Add(-time.Minute), found: make([]vendorGPUs, 2)}
	late.keep(&late.found[1], vendorGPUs{gpus: []event.GPU{{Name: "integrated"}}})
	late.read(new(event.Host))
	late.keep(&late.found[0], both)
	w = late
	if read(); len(h.GPUs) != 2 || h.GPUs[1].Name != "card" || h.GPUProcesses[0].GPU != 1 {
		t.Errorf("a driver that was loaded later: %+v", h)
	}
}

// TestReaderFails: a driver that goes away is closed, and its GPUs are absent with the reason.
func TestReaderFails(t *testing.T) {
	reader, before := &failing{left: 1}, vendors
	defer func() { vendors = before }()
	vendors = []func(context.Context) (gpuReader, error){
		func(context.Context) (gpuReader, error) { return nil, errNoGPU },
		func(context.Context) (gpuReader, error) { return reader, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	live := watchGPUs(ctx)
	var h event.Host
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
		h = event.Host{}
		if live.read(&h); h.NoGPU == "gone 0" {
			break
		}
	}
	cancel()
	live.wait()
	if h.NoGPU != "gone 0" || reader.closed != 1 {
		t.Errorf("%q, closed %d times", h.NoGPU, reader.closed)
	}
}

// TestGPURest: readings that cost much are taken less often, and not so seldom that they are stale.
func TestGPURest(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		100 * time.Microsecond: time.Second, 750 * time.Microsecond: time.Second, 1500 * time.Microsecond: 2 * time.Second, time.Second: gpuSilence - gpuInterval,
	} {
		if got := gpuRest(took); got != want {
			t.Errorf("%v after %v, want %v", got, took, want)
		}
	}
}
