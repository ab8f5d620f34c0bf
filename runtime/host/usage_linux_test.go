package host

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
)

// engineFiles returns the files of an engine of the processes 11 and 12, the first with two threads, after n steps.
func engineFiles(n int, state string) map[string]string {
	return map[string]string{
		"proc/11/stat":                      fmt.Sprintf("11 (a) %s 1 1 1 0 -1 0 0 0 %d 0 0 0 0 0 20 0 2 0 0 0 0\n", state, 100+3*n),
		"proc/12/stat":                      fmt.Sprintf("12 (a) S 11 1 1 0 -1 0 0 0 %d 0 0 0 0 0 20 0 1 0 0 0 0\n", 7*n),
		"proc/11/io":                        fmt.Sprintf("read_bytes: %d\n", 4096*n),
		"proc/12/io":                        fmt.Sprintf("read_bytes: %d\n", 100*n),
		"proc/11/task/11/schedstat":         fmt.Sprintf("%d %d %d\n", 900+50*n, 1e6*n, n),
		"proc/11/task/13/schedstat":         "700 800 9\n",
		"proc/12/task/12/schedstat":         fmt.Sprintf("%d 5 3\n", 20*n),
		"proc/11/cgroup":                    "2:cpu:/a\n1:memory:/a\n0::/b\n",
		"proc/11/mountinfo":                 "3 1 0:3 / /c rw - cgroup cgroup rw,cpu\n4 1 0:4 / /m rw - cgroup cgroup rw,memory\n5 1 0:5 / /u rw - cgroup2 x rw\n",
		"proc/11/root/c/a/cpu.stat":         fmt.Sprintf("throttled_time %d\n", 400*n),
		"proc/11/root/m/a/memory.failcnt":   fmt.Sprintf("%d\n", 9*n),
		"proc/11/root/c/a/cpu.cfs_quota_us": "150000\n", "proc/11/root/c/a/cpu.cfs_period_us": "100000\n",
		"proc/11/root/m/a/memory.stat":           fmt.Sprintf("workingset_refault_file 1\ntotal_workingset_refault_file %d\n", n),
		"proc/11/root/m/a/memory.limit_in_bytes": "10\n", "proc/11/root/m/a/memory.usage_in_bytes": "5\n",
		"proc/11/root/u/b/cgroup.events": "populated 1\n",
		"proc/11/root/u/b/io.pressure":   fmt.Sprintf("some avg10=0 total=%d\n", 2*n),
		"proc/pressure/memory":           fmt.Sprintf("some avg10=0 total=%d\n", 3*n),
	}
}

// TestUsage reads an engine of two processes: the first sample has no values of an interval, later ones the increase, and
// all are absent once the processes are gone.
func TestUsage(t *testing.T) {
	root := tree(t, engineFiles(1, "S"))
	pids := []int{11, 12}
	r := usageReaderAt(root, UsageOptions{Processes: func() []int { return pids }})
	defer r.close()
	r.affinity = func(_ int, set *unix.CPUSet) error { set.Set(0); set.Set(1); return nil }
	r.reset()
	if u, ok := r.read(0, 0); !ok || u.Running.OK() || u.Waiting.OK() || u.Faults.OK() || u.Throttled.OK() {
		t.Errorf("first sample %+v", u)
	}
	write(t, root, engineFiles(3, "S"))
	const span = 20 * time.Millisecond
	u, ok := r.read(span, 0)
	want := event.Usage{
		Interval: int64(span), Running: event.MeasuredValue(140), Waiting: event.MeasuredValue(2e6), Threads: event.MeasuredValue(2),
		Cores: event.DerivedValue(1.5), Faults: event.MeasuredValue(20), Read: event.MeasuredValue(8392), Reread: event.MeasuredValue(float64(min(8392, 2*os.Getpagesize()))), Blocked: event.MeasuredValue(4000),
		Throttled: event.MeasuredValue(800), Stopped: event.DerivedValue(0), MemoryStall: event.DerivedValue(6000), LimitHits: event.MeasuredValue(18),
	}
	if !ok || u != want {
		t.Errorf("%+v\nwant\n%+v", u, want)
	}
	const busy = 2e6 + 100 // ns that a thread ran or waited in two steps
	for _, c := range []struct {
		state string
		step  int
		want  time.Duration // stopped
	}{{"T", 5, span - busy}, {"T", 7, span}, {"t", 7, span}, {"S", 9, span - busy}, {"S", 11, 0}} {
		write(t, root, engineFiles(c.step, c.state))
		if u, _ := r.read(span, 0); u.Stopped != event.DerivedValue(float64(c.want)) {
			t.Errorf("step %d: stopped %v ns, want %d", c.step, u.Stopped.V, c.want)
		}
	}
	r.forget(func(int) bool { return true }) // unlike files in /proc, these stay readable while they are open
	remove(t, root, "proc/11", "proc/12")
	if u, ok := r.read(span, 0); ok {
		t.Errorf("after their end %+v", u)
	}
	pids = nil
	r.reset()
	if u, ok := r.read(span, 0); ok {
		t.Errorf("without processes %+v", u)
	}
}

// TestUsageOfNewProcess checks that what a process did before it belonged to the engine does not count.
func TestUsageOfNewProcess(t *testing.T) {
	root := tree(t, engineFiles(9, "S"))
	pids := []int{11}
	r := usageReaderAt(root, UsageOptions{Processes: func() []int { return pids }})
	defer r.close()
	r.reset()
	r.read(0, 0)
	pids = []int{11, 12}
	r.listed = time.Time{} // a second has passed
	if u, ok := r.read(time.Millisecond, 0); !ok || u.Running.V != 0 || u.Faults.V != 0 || u.Read.V != 0 {
		t.Errorf("%+v, want no change", u)
	}
}

// TestStopped stops a process and lets it continue.
func TestStopped(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Skipf("no sleep to stop: %v", err)
	}
	t.Cleanup(func() { _, _ = sleep.Process.Kill(), sleep.Wait() })
	pid := sleep.Process.Pid
	r := usageReaderAt("/", UsageOptions{Processes: func() []int { return []int{pid} }})
	defer r.close()
	r.reset()
	const span = 20 * time.Millisecond
	stopped := func() float64 {
		u, ok := r.read(span, 0)
		if !ok {
			t.Fatal("the process cannot be read")
		}
		return u.Stopped.V
	}
	stopped()
	if v := stopped(); v != 0 {
		t.Errorf("stopped for %v ns before the signal", v)
	}
	if err := sleep.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait(t, pid, "T")
	if first, second := stopped(), stopped(); first == 0 || second != float64(span) {
		t.Errorf("stopped for %v ns, then %v, want all of %v", first, second, span)
	}
	if err := sleep.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wait(t, pid, "S")
	if first, second := stopped(), stopped(); first == 0 || second != 0 {
		t.Errorf("after it continued %v ns, then %v", first, second)
	}
}

// wait waits until a process is in a state.
func wait(t *testing.T, pid int, state string) {
	t.Helper()
	for range 1000 {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if p, ok := parseProcess(raw); err == nil && ok && strings.ContainsRune(state, rune(p.state)) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the process never was in the state %s", state)
}

// TestUsageOfItself reads this process: its threads run, and a signal to continue explains a late sample.
func TestUsageOfItself(t *testing.T) {
	r := usageReaderAt("/", UsageOptions{EngineThreads: func() []int { return []int{unix.Gettid()} }})
	defer r.close()
	r.reset()
	r.read(0, 0)
	u, ok := r.read(time.Minute, 5)
	for name, v := range map[string]event.Reading{
		"run": u.Running, "wait": u.Waiting, "outside": u.Outside, "cores": u.Cores, "faults": u.Faults, "read": u.Read, "GC": u.GCPause, "stopped": u.Stopped,
	} {
		if !v.OK() {
			t.Errorf("%s: %v", name, v.Absence())
		}
	}
	if !ok || u.Stopped.V != 0 {
		t.Errorf("%+v", u)
	}
	r.resumed <- syscall.SIGCONT
	if u, _ := r.read(0, 5); u.Stopped != event.MeasuredValue(0) {
		t.Errorf("stopped %+v, although threads were busy", u.Stopped)
	}
	if u, _ := r.read(time.Minute, 5); u.Stopped != event.MeasuredValue(5) {
		t.Errorf("stopped %+v, want the delay", u.Stopped)
	}
	if u, _ := r.read(time.Minute, 5); u.Stopped != event.MeasuredValue(0) {
		t.Errorf("stopped %+v without a signal", u.Stopped)
	}
}

// TestLateSignal checks that a signal to continue explains a late sample even if the runtime delivers it later.
func TestLateSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := usageReaderAt("/", UsageOptions{EngineThreads: func() []int { return []int{unix.Gettid()} }})
		defer r.close()
		r.reset()
		r.read(0, 0)
		go func() {
			time.Sleep(signalDelay / 2)
			r.resumed <- syscall.SIGCONT
		}()
		if u, _ := r.read(time.Hour, time.Minute); u.Stopped != event.MeasuredValue(float64(time.Minute)) {
			t.Errorf("stopped %+v, want the delay", u.Stopped)
		}
	})
}

// TestManyUsedThreads checks that the files of very many threads do not stay open.
func TestManyUsedThreads(t *testing.T) {
	files := maps.Clone(engineFiles(1, "S"))
	for i := range maxOpenThreads {
		files[fmt.Sprintf("proc/11/task/%d/schedstat", 100+i)] = "1 1 1\n"
	}
	r := usageReaderAt(tree(t, files), UsageOptions{Processes: func() []int { return []int{11} }})
	defer r.close()
	r.reset()
	r.read(0, 0)
	if u, ok := r.read(time.Millisecond, 0); !ok || u.Waiting != event.MeasuredValue(0) {
		t.Errorf("%+v", u)
	}
	for name := range r.files {
		if strings.HasSuffix(name, "schedstat") {
			t.Fatalf("%s is open", name)
		}
	}
}

func BenchmarkUsage(b *testing.B) {
	for name, opt := range map[string]UsageOptions{
		"own":     {EngineThreads: func() []int { return []int{os.Getpid(), unix.Gettid()} }},
		"another": {Processes: func() []int { return []int{os.Getpid()} }},
	} {
		b.Run(name, func(b *testing.B) {
			r := usageReaderAt("/", opt)
			defer r.close()
			r.reset()
			b.ReportAllocs()
			for b.Loop() {
				r.read(time.Millisecond, 0)
			}
		})
	}
}
