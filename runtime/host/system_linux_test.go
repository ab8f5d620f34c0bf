package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestMachine(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/stat":    "cpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 100 0 0 100 0 0 0 0 0 0\n",
		"proc/loadavg": "1.25 0.5 0.1 1/200 3\n",
		"proc/meminfo": "MemTotal: 4000 kB\nMemFree: 10 kB\nMemAvailable: 1000 kB\n",
		"proc/cpuinfo": "processor: 0\ncpu MHz\t\t: 2000.5\n\nprocessor: 1\ncpu MHz\t\t: 3000.5\n",
	})
	l := newLinux(root)
	defer l.close()
	var h event.Host
	l.machine(&h, 0)
	if h.CPU.OK() || h.CPU.Absence() != "not yet" || len(h.Cores) != 0 {
		t.Errorf("first sample: CPU %v, cores %v; want not yet", h.CPU, h.Cores)
	}
	write(t, root, map[string]string{"proc/stat": "cpu0 200 0 0 100 0 0 0 0 0 0\ncpu1 100 0 0 200 0 0 0 0 0 0\nprocs_running 3\nprocs_blocked 1\n"})
	l.machine(&h, time.Second)
	l.limits(&h, 1, time.Second)
	if len(h.Cores) != 2 || h.Cores[0] != 1 || h.Cores[1] != 0 || h.CPU != event.MeasuredValue(0.5) {
		t.Errorf("CPU = %v, cores %v; want one core busy and one idle", h.CPU, h.Cores)
	}
	for name, tt := range map[string]struct{ got, want event.Reading }{
		"frequency":    {h.Frequency, event.MeasuredValue(2500.5e6)},
		"first clock":  {event.MeasuredValue(h.Clocks[0]), event.MeasuredValue(2000.5e6)},
		"runnable":     {h.Runnable, event.MeasuredValue(3)},
		"load":         {h.Load1, event.MeasuredValue(1.25)},
		"memory":       {h.MemTotal, event.MeasuredValue(4000 << 10)},
		"memory used":  {h.MemUsed, event.MeasuredValue(3000 << 10)},
		"limit of CPU": {h.CPULimit, event.Absent(event.NotReported)},
		"thermal":      {h.Thermal, event.Absent(event.NotReported)},
		"highest":      {h.MaxClock, event.Absent(event.NotReported)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %+v, want %+v", name, tt.got, tt.want)
		}
	}
	if h.Limited {
		t.Error("a machine without control groups is limited")
	}
}

// TestControlGroups checks that the limits of the groups of the engine's process replace the machine's values, and that
// other processes have none.
func TestControlGroups(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/meminfo": "MemTotal: 4000 kB\nMemAvailable: 1000 kB\n", "proc/9/cgroup": "0::/a\n", "proc/9/stat": stat(9, 1, 5),
		"proc/9/mountinfo":                       "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"proc/9/root/sys/fs/cgroup/a/memory.max": "1048576\n", "proc/9/root/sys/fs/cgroup/a/memory.current": "4096\n",
		"proc/9/root/sys/fs/cgroup/a/cpu.max": "150000 100000\n", "proc/9/root/sys/fs/cgroup/a/cpu.stat": "throttled_usec 200000\n",
	})
	l := newLinux(root)
	defer l.close()
	affine := 4
	l.affinity = func(_ int, set *unix.CPUSet) error {
		for i := range affine {
			set.Set(i)
		}
		return nil
	}
	l.process(9, 0)
	var h event.Host
	for _, c := range []struct {
		name                              string
		pid                               int
		stat                              string
		total, used, cpu, throttled, free event.Reading
	}{
		{"another process", 8, "", event.MeasuredValue(4000 << 10), event.MeasuredValue(3000 << 10), event.Reading{}, event.Reading{}, event.Reading{}},
		{"first", 9, "throttled_usec 200000\n", event.MeasuredValue(1 << 20), event.MeasuredValue(4096), event.MeasuredValue(1.5), event.Absent(event.NotYet), event.DerivedValue(1.5)},
		{"then", 9, "throttled_usec 600000\n", event.MeasuredValue(1 << 20), event.MeasuredValue(4096), event.MeasuredValue(1.5), event.MeasuredValue(0.2), event.DerivedValue(1)},
	} {
		write(t, root, map[string]string{"proc/9/root/sys/fs/cgroup/a/cpu.stat": c.stat})
		if c.name == "then" {
			affine = 1
		}
		h.Engine = event.Process{}
		l.limits(&h, c.pid, 2*time.Second)
		if h.MemTotal != c.total || h.MemUsed != c.used || h.CPULimit != c.cpu || h.Limited != c.cpu.OK() || h.Throttled != c.throttled || h.Engine.Cores != c.free {
			t.Errorf("%s: memory %+v of %+v, quota %+v (limited: %v), throttled %+v, cores %+v; want %+v",
				c.name, h.MemUsed, h.MemTotal, h.CPULimit, h.Limited, h.Throttled, h.Engine.Cores, c)
		}
	}
}

// TestSlowed checks what slows all processes: stolen time, heat, and a clock below the highest.
func TestSlowed(t *testing.T) {
	cpu := "sys/devices/system/cpu/cpu0/"
	files := func(steal, slowed int) map[string]string {
		return map[string]string{
			"proc/stat":                                     fmt.Sprintf("cpu0 100 0 0 %d 0 0 0 %d 0 0\n", 100+9*steal, steal),
			cpu + "cpufreq/scaling_cur_freq":                "800000\n",
			cpu + "cpufreq/cpuinfo_max_freq":                "3200000\n",
			cpu + "thermal_throttle/core_throttle_count":    fmt.Sprintf("%d\n", slowed),
			cpu + "thermal_throttle/package_throttle_count": "7\n",
		}
	}
	root := tree(t, files(0, 1))
	l := newLinux(root)
	defer l.close()
	var first, h event.Host
	l.machine(&first, 0)
	write(t, root, files(10, 5))
	l.machine(&h, 2*time.Second)
	for name, tt := range map[string]struct{ first, got, want event.Reading }{
		"stolen":            {first.Steal, h.Steal, event.MeasuredValue(0.1)},
		"thermal":           {first.Thermal, h.Thermal, event.MeasuredValue(2)},
		"highest frequency": {event.Absent(event.NotYet), h.MaxClock, event.MeasuredValue(3.2e9)},
		"frequency":         {event.Absent(event.NotYet), h.Frequency, event.MeasuredValue(0.8e9)},
	} {
		if tt.first != event.Absent(event.NotYet) || tt.got != tt.want {
			t.Errorf("%s = %+v after %+v, want %+v", name, tt.got, tt.first, tt.want)
		}
	}
}

// process42 returns the files of a process that has used ticks of CPU time and waited wait ns for a core.
func process42(ticks, wait, read int) map[string]string {
	return map[string]string{
		"proc/42/stat":              fmt.Sprintf("42 (engine) S 1 42 42 0 -1 0 %d 0 %d 0 %d 0 0 0 20 0 3 0 1 1 1 1 1", ticks, ticks/10, ticks),
		"proc/42/status":            "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n",
		"proc/42/io":                fmt.Sprintf("rchar: 9\nsyscr: %d\nsyscw: 4\nread_bytes: %d\nwrite_bytes: 8\n", read/100, read),
		"proc/42/task/42/schedstat": fmt.Sprintf("1000 %d 5\n", wait),
		"proc/42/task/43/schedstat": fmt.Sprintf("1000 %d 5\n", 2*wait),
		"proc/42/task/42/status":    fmt.Sprintf("voluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", 2*ticks, ticks),
		"proc/42/task/43/status":    fmt.Sprintf("voluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", ticks, 5),
	}
}

func TestProcess(t *testing.T) {
	root := tree(t, process42(100, 1e9, 1000))
	l := newLinux(root)
	defer l.close()
	first := l.process(42, 0)
	if first.CPU.OK() || first.RunWait.OK() || first.Voluntary.OK() || first.Read.OK() {
		t.Errorf("first sample has rates: %+v", first)
	}
	write(t, root, process42(300, 1.25e9, 5000))
	got := l.process(42, 2*time.Second)
	for name, tt := range map[string]struct{ got, want event.Reading }{
		"CPU":        {got.CPU, event.MeasuredValue(1)},         // 200 ticks in 2 s
		"faults":     {got.Faults, event.MeasuredValue(10)},     // 20 in 2 s
		"run wait":   {got.RunWait, event.MeasuredValue(0.375)}, // 0.25 s and 0.5 s in 2 s
		"minor":      {got.MinorFaults, event.MeasuredValue(100)},
		"voluntary":  {got.Voluntary, event.MeasuredValue(300)}, // 400 and 200 in 2 s
		"made to":    {got.Involuntary, event.MeasuredValue(100)},
		"RSS":        {got.RSS, event.MeasuredValue(200 << 10)},
		"peak":       {got.Peak, event.MeasuredValue(300 << 10)},
		"read":       {got.Read, event.MeasuredValue(2000)},
		"read ops":   {got.ReadOps, event.MeasuredValue(20)},
		"read sum":   {got.ReadSum, event.MeasuredValue(5000)},
		"write":      {got.Write, event.MeasuredValue(0)},
		"write sum":  {got.WriteSum, event.MeasuredValue(8)},
		"threads":    {got.Threads, event.MeasuredValue(3)},
		"of nothing": {l.process(43, time.Second).RSS, event.Absent(event.NotReported)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %+v, want %+v", name, tt.got, tt.want)
		}
	}
}

// TestManyThreads checks that context switches of very many threads are not read.
func TestManyThreads(t *testing.T) {
	files := process42(100, 1, 1)
	for i := range fewThreads {
		files[fmt.Sprintf("proc/42/task/%d/schedstat", 100+i)] = "1 1 1\n"
	}
	l := newLinux(tree(t, files))
	defer l.close()
	l.process(42, 0)
	if p := l.process(42, time.Second); p.Voluntary != event.Absent(event.NotReported) || !p.RunWait.OK() {
		t.Errorf("%+v", p)
	}
}

// TestOwnThreadsStayOpen checks that the files of llmtop's own threads stay open for as long as the threads live.
func TestOwnThreadsStayOpen(t *testing.T) {
	pid := os.Getpid()
	ended := threadTimes(fmt.Sprintf("proc/%d/", pid), 101)
	root := tree(t, map[string]string{threadTimes(fmt.Sprintf("proc/%d/", pid), 100): "1 1 1\n", ended: "1 1 1\n", ownThread(101): "1 (a) S"})
	l := newLinux(root)
	defer l.close()
	l.process(pid, time.Second)
	if n := len(l.files); n != 2 {
		t.Errorf("%d files are open, want those of two threads", n)
	}
	l.threads([]int{101})
	if n := len(l.files); n != 3 {
		t.Errorf("%d files are open, want that of an engine's thread, too", n)
	}
	remove(t, root, filepath.Dir(ended))
	l.process(pid, time.Second)
	if _, isOpen := l.files[ended]; isOpen || len(l.files) != 1 {
		t.Errorf("of one thread these files are open: %v", l.files)
	}
}

// TestLongFiles checks files longer than the buffer, and than what the kernel returns at once.
func TestLongFiles(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 5000)
	l := newLinux(tree(t, map[string]string{"proc/long": long, "proc/empty": "", "proc/short": "1\n"}))
	defer l.close()
	for _, read := range []func(string) ([]byte, error){l.read, l.readOnce} {
		for name, want := range map[string]string{"proc/long": long, "proc/short": "1\n"} {
			if got, err := read(name); string(got) != want || err != nil {
				t.Errorf("%s has %d bytes, %v; want %d", name, len(got), err, len(want))
			}
		}
		for _, name := range []string{"proc/empty", "proc/none"} {
			if got, err := read(name); err == nil {
				t.Errorf("%s: %q without an error", name, got)
			}
		}
	}
}

// TestPressure checks stall times and network traffic since the previous sample.
func TestPressure(t *testing.T) {
	counters := func(n int) map[string]string {
		return map[string]string{
			"proc/stat": "cpu0 1 0 0 1\n", "proc/net/dev": fmt.Sprintf("eth0: %d 0 0 0 0 0 0 0 %d 0\n", 1000*n, 10*n),
			"proc/pressure/cpu": fmt.Sprintf("some avg10=0 avg60=0 avg300=0 total=%d\n", 500_000*n),
			"proc/pressure/io":  fmt.Sprintf("some avg10=0 avg60=0 avg300=0 total=%d\n", 100_000*n),
		}
	}
	root := tree(t, counters(1))
	l := newLinux(root)
	defer l.close()
	var first, h event.Host
	l.machine(&first, 0)
	write(t, root, counters(2))
	l.machine(&h, 2*time.Second)
	for name, tt := range map[string]struct{ first, got, want event.Reading }{
		"cpu":      {first.CPUPressure, h.CPUPressure, event.MeasuredValue(0.25)},
		"io":       {first.IOPressure, h.IOPressure, event.MeasuredValue(0.05)},
		"memory":   {first.MemPressure, h.MemPressure, event.Absent(event.NotReported)},
		"received": {first.Received, h.Received, event.MeasuredValue(500)},
		"sent":     {first.Sent, h.Sent, event.MeasuredValue(5)},
	} {
		if tt.first.OK() || tt.got != tt.want {
			t.Errorf("%s = %+v after %+v, want %+v", name, tt.got, tt.first, tt.want)
		}
	}
}

// TestMalformedPressure: files without the total of some tasks report nothing.
func TestMalformedPressure(t *testing.T) {
	for _, bad := range []string{
		"", "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", "some avg10=0\n", "some avg10=0 avg60=0 avg300=0 total=x\n",
		"some avg10=0 avg60=0 avg300=0 total=99999999999999999999\n",
	} {
		l := newLinux(tree(t, map[string]string{"proc/pressure/cpu": bad}))
		for range 2 {
			var h event.Host
			if l.pressure(&h, time.Second); h.CPUPressure != event.Absent(event.NotReported) {
				t.Errorf("%q: %+v", bad, h.CPUPressure)
			}
		}
		l.close()
	}
}

// TestNoFiles checks that readings are absent, not 0, if no file exists.
func TestNoFiles(t *testing.T) {
	l := newLinux(t.TempDir())
	defer l.close()
	var h event.Host
	l.machine(&h, time.Second)
	l.limits(&h, 1, time.Second)
	p := l.process(1, time.Second)
	for i, r := range []event.Reading{
		h.CPU, h.Frequency, h.Load1, h.MemTotal, h.MemUsed, h.CPULimit, p.CPU, p.RunWait, p.RSS, p.Peak, p.Read, p.Write, p.ReadOps,
		p.WriteOps, p.ReadSum, p.WriteSum, p.Faults, p.Threads, l.threads([]int{1}), h.Throttled, h.Received, h.Sent, h.CPUPressure,
		h.MemPressure, h.IOPressure, h.Steal, h.Thermal, h.MaxClock, p.Cores, p.MinorFaults, p.Voluntary, p.Involuntary,
	} {
		if r.OK() {
			t.Errorf("reading %d is %v although no file exists", i, r.V)
		}
	}
}
