//go:build amd64 || arm64

package probe

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
)

// cudaProgram starts a program of testdata/cuda with a stand-in for libcudart, and returns its number.
func cudaProgram(t *testing.T, name string, args ...string) int {
	t.Helper()
	dir := t.TempDir()
	lib, driver, program := filepath.Join(dir, "libcudart.so.13"), filepath.Join(dir, "libcuda.so.1"), filepath.Join(dir, name)
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", driver, "-x", "c", "/dev/null"},
		{"-shared", "-fPIC", "-o", lib, "testdata/cuda/cudart.c"},
		{"-O1", "-o", program, "testdata/cuda/" + name + ".c", "-Wl,--no-as-needed", lib, driver, "-Wl,-rpath," + dir},
	} {
		if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
			t.Skipf("no C compiler: %v %s", err, out)
		}
	}
	cmd := exec.Command(program, args...)
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
		pid := cudaProgram(t, "tokens", strconv.Itoa(tt.kernels), strconv.Itoa(tt.pause))
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

// TestCUDAPasses: the passes and tokens of llama.cpp have what they called of CUDA, and its prompts their copies, which add
// up with the other parts of TTFT. What is in another stream, or waits for the computation, is no copy.
func TestCUDAPasses(t *testing.T) {
	needProbes(t)
	for name, handed := range map[string]float64{"on the GPU": 0, "experts on the CPU": 400000} {
		t.Run(name, func(t *testing.T) {
			h := observe(t, cudaProgram(t, "llama", strconv.Itoa(int(handed)), "--cpu-moe"), engine.NewClock(), engine.Hooks{})
			counted := func(e event.Event) bool {
				c, ok := e.Data.(*event.Calls)
				return ok && e.Kind == event.KindStage && c.To.V > 0
			}
			h.wait(t, "the copies of a prompt", counted)
			ended := 0
			all := h.wait(t, "the end", func(e event.Event) bool {
				if ended == 0 && counted(e) {
					ended++
				}
				return ended > 0 && e.Kind == event.KindRequest && e.State == event.StateFinished
			})
			checkPasses(t, all, handed)
			checkParts(t, all)
		})
	}
}

func checkPasses(t *testing.T, all []event.Event, handed float64) {
	t.Helper()
	decoded := 0
	for _, e := range all {
		c, ok := e.Data.(*event.Calls)
		if !ok || e.Kind != event.KindStep {
			continue
		}
		ms := func(r event.Reading) float64 { return r.V / 1e6 }
		want := event.Calls{Launches: event.MeasuredValue(0), To: event.MeasuredValue(4), From: event.MeasuredValue(128000)}
		copied := 0.
		if e.Prompt > 0 {
			want.Launches, want.To.V, want.From.V, copied = event.MeasuredValue(101), 64+4e6, 2e6+128000, 4
		} else {
			decoded++
		}
		if handed > 0 {
			want.Launches.V, want.To.V, want.From.V, copied = want.Launches.V+8, want.To.V+8*handed, want.From.V+8*handed, copied+8*handed/1e6
		}
		if c.Launches != want.Launches || c.Graphs.V != 1 || c.To != want.To || c.From != want.From {
			t.Errorf("%+v, want %+v", c, want)
		}
		if ms(c.ToTime) < copied || ms(c.Wait) < 1.1 || ms(c.Gap) < .3 || ms(c.ToTime)+ms(c.FromTime)+ms(c.Wait)+ms(c.Gap) > float64(e.Dur)/1e6 {
			t.Errorf("%+v of a pass of %d ns", c, e.Dur)
		}
		if handed == 0 && e.Prompt == 0 && ms(c.FromTime) > 0 { // it waits for the computation
			t.Errorf("%v ns for the logits", c.FromTime)
		}
	}
	if decoded == 0 {
		t.Error("no decode passes")
	}
}

// checkParts checks that the parts of a TTFT with copies add up to it, and that no time is in two of them.
func checkParts(t *testing.T, all []event.Event) {
	t.Helper()
	s := store.New(store.Options{Now: func() event.Time { return all[len(all)-1].At }})
	for _, e := range all {
		s.Emit(e)
		s.Drain()
	}
	found := false
	for _, r := range s.Snapshot().Requests {
		if r.Calls == nil || len(r.Parts) == 0 {
			continue
		}
		found = true
		parts, sum := map[event.Stage]time.Duration{}, time.Duration(0)
		for _, p := range r.Parts {
			parts[p.Stage], sum = p.Dur, sum+p.Dur
		}
		stamped := time.Duration(0)
		for _, p := range r.Stages {
			if p.Stage == event.StagePrompt {
				stamped = p.Dur
			}
		}
		to, from := parts[event.StageHostToDevice], parts[event.StageDeviceToHost]
		if to < 4*time.Millisecond || from < 2*time.Millisecond || parts[event.StagePrompt] != stamped-to-from {
			t.Errorf("parts %v, the prompt took %v", r.Parts, stamped)
		}
		if d := sum - time.Duration(r.TTFT.V*1e9); d.Abs() > time.Microsecond {
			t.Errorf("parts %v add up to %v, TTFT %v", r.Parts, sum, r.TTFT.V)
		}
		if r.Tokens[len(r.Tokens)-1].Calls == nil {
			t.Error("tokens have no calls")
		}
	}
	if !found {
		t.Error("no request with copies")
	}
}

// TestHostExperts reads the options of llama.cpp that put experts on the CPU.
func TestHostExperts(t *testing.T) {
	for _, c := range []struct {
		line, environ string
		want          bool
	}{
		{line: "llama-server -m a.gguf -ngl 99"},
		{line: "llama-server --cpu-moe", want: true},
		{line: "llama-server -ncmoe 12 -m a.gguf", want: true},
		{line: "llama-server --n-cpu-moe 0"},
		{line: "llama-server --n-cpu-moe"},
		{line: `llama-server -ot blk\.(2|3)\.ffn_.*_exps\.=CPU`, want: true},
		{line: "llama-server -ot exps=CUDA0"},
		{line: "llama-server", environ: "HOME=/ LLAMA_ARG_CPU_MOE=1", want: true},
		{line: "llama-server", environ: "LLAMA_ARG_N_CPU_MOE=3", want: true},
		{line: "llama-server", environ: "LLAMA_ARG_OVERRIDE_TENSOR=exps=CPU", want: true},
		{line: "llama-server", environ: "OTHER=--cpu-moe"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"cmdline": c.line, "environ": c.environ} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, " ", "\x00")+"\x00"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := hostExperts(dir); got != c.want {
			t.Errorf("%q %q: %t, want %t", c.line, c.environ, got, c.want)
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
	if all.cost(&none) != 10*cudaTrap {
		t.Error(all.cost(&none))
	}
}

// hostSink takes samples of the machine.
type hostSink func(*event.Host)

func (f hostSink) Emit(e event.Event) { f(e.Data.(*event.Host)) }
