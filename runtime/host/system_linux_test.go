package host

import (
	"fmt"
	"testing"
	"time"

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
	if h.CPU.OK() || h.CPU.Why() != "not yet" || len(h.Cores) != 0 {
		t.Errorf("first sample: CPU %v, cores %v; want not yet", h.CPU, h.Cores)
	}
	write(t, root, map[string]string{"proc/stat": "cpu0 200 0 0 100 0 0 0 0 0 0\ncpu1 100 0 0 200 0 0 0 0 0 0\n"})
	l.machine(&h, time.Second)
	if len(h.Cores) != 2 || h.Cores[0] != 1 || h.Cores[1] != 0 || h.CPU != event.Of(0.5) {
		t.Errorf("CPU = %v, cores %v; want one core busy and one idle", h.CPU, h.Cores)
	}
	for name, tt := range map[string]struct{ got, want event.Reading }{
		"frequency":    {h.Frequency, event.Of(2500.5e6)},
		"load":         {h.Load1, event.Of(1.25)},
		"memory":       {h.MemTotal, event.Of(4000 << 10)},
		"memory used":  {h.MemUsed, event.Of(3000 << 10)},
		"limit of CPU": {h.CPULimit, event.Absent(event.NotReported)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %+v, want %+v", name, tt.got, tt.want)
		}
	}
	if h.Limited {
		t.Error("a machine without control groups is limited")
	}
}

// TestControlGroups checks that a container sees what it is granted and not what the machine has.
func TestControlGroups(t *testing.T) {
	tests := []struct {
		name             string
		files            map[string]string
		total, used, cpu event.Reading
		limited          bool
	}{
		{
			"version 2",
			map[string]string{
				"sys/fs/cgroup/memory.max": "1048576\n", "sys/fs/cgroup/memory.current": "4096\n", "sys/fs/cgroup/cpu.max": "150000 100000\n",
			},
			event.Of(1 << 20),
			event.Of(4096), event.Of(1.5), true,
		},
		{
			"version 2 without limits",
			map[string]string{
				"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "4096\n", "sys/fs/cgroup/cpu.max": "max 100000\n",
			},
			event.Of(4000 << 10),
			event.Of(3000 << 10), event.Absent(event.NotReported), false,
		},
		{
			"version 1",
			map[string]string{
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "8192\n",
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			},
			event.Of(2 << 20),
			event.Of(8192), event.Of(0.5), true,
		},
		{
			"version 1 without limits",
			map[string]string{
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "8192\n",
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			},
			event.Of(4000 << 10),
			event.Of(3000 << 10), event.Absent(event.NotReported), false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			write(t, root, map[string]string{"proc/meminfo": "MemTotal: 4000 kB\nMemAvailable: 1000 kB\n"})
			l := newLinux(root)
			defer l.close()
			var h event.Host
			l.machine(&h, 0)
			if h.MemTotal != tt.total || h.MemUsed != tt.used || h.CPULimit != tt.cpu || h.Limited != tt.limited {
				t.Errorf("memory %+v of %+v, cores %+v, limited %v; want %+v of %+v, %+v, %v",
					h.MemUsed, h.MemTotal, h.CPULimit, h.Limited, tt.used, tt.total, tt.cpu, tt.limited)
			}
		})
	}
}

// process42 are the files of a process that has used ticks of processor time and waited for a core for wait ns.
func process42(ticks, wait, read int) map[string]string {
	return map[string]string{
		"proc/42/stat":              fmt.Sprintf("42 (engine) S 1 42 42 0 -1 0 0 0 %d 0 %d 0 0 0 20 0 3 0 1 1 1 1 1", ticks/10, ticks),
		"proc/42/status":            "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n",
		"proc/42/io":                fmt.Sprintf("rchar: 9\nsyscr: %d\nsyscw: 4\nread_bytes: %d\nwrite_bytes: 8\n", read/100, read),
		"proc/42/task/42/schedstat": fmt.Sprintf("1000 %d 5\n", wait),
		"proc/42/task/43/schedstat": fmt.Sprintf("1000 %d 5\n", 2*wait),
	}
}

func TestProcess(t *testing.T) {
	root := tree(t, process42(100, 1e9, 1000))
	l := newLinux(root)
	defer l.close()
	first := l.process(42, 0)
	if first.CPU.OK() || first.RunWait.OK() || first.Read.OK() {
		t.Errorf("first sample has rates: %+v", first)
	}
	write(t, root, process42(300, 1.25e9, 5000))
	got := l.process(42, 2*time.Second)
	for name, tt := range map[string]struct{ got, want event.Reading }{
		"CPU":        {got.CPU, event.Of(1)},         // 200 ticks in 2 s
		"faults":     {got.Faults, event.Of(10)},     // 20 in 2 s
		"run wait":   {got.RunWait, event.Of(0.375)}, // 0.25 s and 0.5 s in 2 s
		"RSS":        {got.RSS, event.Of(200 << 10)},
		"peak":       {got.Peak, event.Of(300 << 10)},
		"read":       {got.Read, event.Of(2000)},
		"read ops":   {got.ReadOps, event.Of(20)},
		"read sum":   {got.ReadSum, event.Of(5000)},
		"write":      {got.Write, event.Of(0)},
		"write sum":  {got.WriteSum, event.Of(8)},
		"threads":    {got.Threads, event.Of(3)},
		"of nothing": {l.process(43, time.Second).RSS, event.Absent(event.NotReported)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %+v, want %+v", name, tt.got, tt.want)
		}
	}
}

// TestNothingToRead checks that a system which tells nothing gives absences, not zeroes.
func TestNothingToRead(t *testing.T) {
	l := newLinux(t.TempDir())
	defer l.close()
	var h event.Host
	l.machine(&h, time.Second)
	p := l.process(1, time.Second)
	for i, r := range []event.Reading{
		h.CPU, h.Frequency, h.Load1, h.MemTotal, h.MemUsed, h.CPULimit, p.CPU, p.RunWait, p.RSS, p.Peak, p.Read, p.Write, p.ReadOps,
		p.WriteOps, p.ReadSum, p.WriteSum, p.Faults, p.Threads, l.threads([]int{1}),
	} {
		if r.OK() {
			t.Errorf("reading %d is %v although there is nothing to read", i, r.V)
		}
	}
}
