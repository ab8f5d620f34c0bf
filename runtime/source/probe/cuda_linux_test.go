//go:build amd64 || arm64

package probe

import (
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// cudaProgram starts testdata/cuda/tokens.c with a stand-in for libcudart, and returns its number.
func cudaProgram(t *testing.T, kernels, pause int) int {
	t.Helper()
	dir := t.TempDir()
	lib, program := filepath.Join(dir, "libcudart.so.13"), filepath.Join(dir, "tokens")
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", lib, "testdata/cuda/cudart.c"},
		{"-o", program, "testdata/cuda/tokens.c", lib, "-Wl,-rpath," + dir},
	} {
		if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
			t.Skipf("no C compiler: %v %s", err, out)
		}
	}
	cmd := exec.Command(program, strconv.Itoa(kernels), strconv.Itoa(pause))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 100 { // the program is to be loaded
		if target, err := InspectCUDA(cmd.Process.Pid); err == nil && len(target.CUDA) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return cmd.Process.Pid
}

// TestCUDA counts the calls of a process that does not link llama.cpp: all of them with a graph for each token, and in
// windows with many kernels.
func TestCUDA(t *testing.T) {
	needProbes(t)
	for _, tt := range []struct {
		kernels, pause int
		sampled        bool
	}{
		{kernels: 0, pause: 2000},
		{kernels: 500, pause: 2000, sampled: true},
	} {
		pid := cudaProgram(t, tt.kernels, tt.pause)
		if _, err := Inspect(pid); err == nil || !strings.Contains(err.Error(), ErrAbsent.Error()) {
			t.Fatalf("%v, want that it does not link llama.cpp", err)
		}
		target, err := InspectCUDA(pid)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Open(target, engine.NewClock(), engine.Hooks{Experts: true})
		if err != nil {
			t.Fatal(err)
		}
		var seen heard
		ended := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- p.Run(ctx, &seen) }()
		r := event.Process{}
		for range 1000 {
			h := event.Host{Engine: event.Process{PID: pid}}
			p.In(hostSink(func(got *event.Host) { r = got.Engine })).Emit(event.Event{Kind: event.KindHost, Data: &h})
			if h.Engine.Counted != (event.Reading{}) {
				t.Fatal("a shared sample was changed")
			}
			if r.Counted.OK() && r.ToGPU.V > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		tokens := r.ToGPU.V / (4 + 7168) // a second
		near := func(what string, got event.Reading, want float64) {
			if !got.OK() || math.Abs(got.V-want) > .1*want+1 {
				t.Errorf("%d kernels: %s is %+v, want %v", tt.kernels, what, got, want)
			}
		}
		near("copies from the GPU", r.FromGPU, tokens*128000)
		near("launches", r.Launches, tokens*float64(tt.kernels))
		if tt.kernels == 0 {
			near("graphs", r.Graphs, tokens)
		}
		if waits := r.GPUWait; !waits.OK() || waits.V < tokens*.001 || waits.V > 1 {
			t.Errorf("waits %+v of %v tokens", waits, tokens)
		}
		if gap := r.LaunchGap; !gap.OK() || gap.V < tokens*.002*.9 || gap.V+r.GPUWait.V > 1.01 {
			t.Errorf("launch gap %+v of %v tokens", gap, tokens)
		}
		if tt.sampled != (r.Counted.V < .9) {
			t.Errorf("%d kernels: counted %+v", tt.kernels, r.Counted)
		}
		first := seen.all[0].Data.(*event.EngineInfo)
		if first.Name != "tokens" || first.PID != pid || first.Caps != event.CapHost || !strings.Contains(first.Reason, "requests not seen") {
			t.Errorf("%+v", first)
		}
	}
}

// TestCUDARates: what is not certain is absent.
func TestCUDARates(t *testing.T) {
	var none cudaCounters
	all := cudaCounters{Copies: [5]uint64{0, 1, 1, 0, 0}, Bytes: [5]uint64{0, 1000, 10}, Launches: 4, Launchers: 1, Waited: 5e8, Gaps: 1e8}
	if r := all.since(&none, time.Second/2); r.ToGPU.V != 2000 || r.FromGPU.V != 20 || r.Launches.V != 8 || r.GPUWait.V != 1 || r.LaunchGap.V != .2 {
		t.Errorf("%+v", r)
	}
	all.Copies[4], all.Launchers = 1, 2
	if r := all.since(&none, time.Second); r.ToGPU.OK() || r.FromGPU.OK() || r.LaunchGap.OK() || !r.GPUWait.OK() {
		t.Errorf("%+v, want no directions, and no gap of several threads", r)
	}
	if all.cost(&none) != 7*cudaTrap {
		t.Error(all.cost(&none))
	}
}

// hostSink takes samples of the machine.
type hostSink func(*event.Host)

func (f hostSink) Emit(e event.Event) { f(e.Data.(*event.Host)) }
