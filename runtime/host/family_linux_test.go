package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// stat returns /proc/PID/stat of a process that has used the given ticks.
func stat(pid, parent, used int) string {
	return fmt.Sprintf("%d (a) b) S %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 0 0 0\n", pid, parent, used)
}

// TestFamily checks that a process is sampled with its descendants, that ended descendants leave the sum, and that one
// that may not be read makes the sum absent.
func TestFamily(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/1/stat": stat(1, 0, 5), "proc/7/stat": stat(7, 1, 100), "proc/8/stat": stat(8, 7, 50), "proc/9/stat": stat(9, 8, 10), "proc/11/stat": stat(11, 1, 70),
		"proc/7/status": "VmHWM: 9 kB\nVmRSS: 4 kB\n", "proc/8/status": "VmHWM: 9 kB\nVmRSS: 2 kB\n", "proc/9/status": "VmHWM: 9 kB\nVmRSS: 1 kB\n",
		"proc/7/io": "read_bytes: 5\nwrite_bytes: 0\nsyscr: 1\nsyscw: 1\n", "proc/8/io": "read_bytes: 6\nwrite_bytes: 0\nsyscr: 1\nsyscw: 1\n",
		"proc/9/io": "read_bytes: 7\nwrite_bytes: 0\nsyscr: 1\nsyscw: 1\n",
	})
	f := NewFamily()
	f.os = newLinux(root)
	defer f.Close()
	const second = event.Time(time.Second)
	if p := f.Sample(7, second); p.CPU.Origin != event.NotYet || p.RSS != event.MeasuredValue(7<<10) || p.ReadSum != event.MeasuredValue(18) || p.Peak.OK() || p.Threads != event.MeasuredValue(3) {
		t.Errorf("the first sample is %+v", p)
	}
	write(t, root, map[string]string{"proc/7/stat": stat(7, 1, 150), "proc/8/stat": stat(8, 7, 100)})
	if p := f.Sample(7, 3*second); p.CPU != event.MeasuredValue(0.5) || p.PID != 7 {
		t.Errorf("two seconds later it is %+v, want half a core", p)
	}
	if p := f.Sample(12, 3*second); p.CPU.OK() || p.RSS.OK() {
		t.Errorf("a process that does not exist uses %+v", p)
	}

	remove(t, root, "proc/8", "proc/9")
	write(t, root, map[string]string{"proc/7/stat": stat(7, 1, 250), "proc/12/stat": stat(12, 7, 9), "proc/12/status": "VmRSS: 8 kB\n"})
	if p := f.Sample(7, 13*second); p.RSS != event.MeasuredValue(12<<10) || p.CPU != event.MeasuredValue(0.1) || p.Read != event.MeasuredValue(0) || p.Threads != event.MeasuredValue(2) {
		t.Errorf("with a new child in place of the others it is %+v", p)
	}
	l := f.os.(*linux)
	if _, isOpen := l.files["proc/8/stat"]; l.procs[8] != nil || isOpen || l.procs[7] == nil {
		t.Error("an ended process is kept, or a running one was dropped")
	}
}

// TestFamilyThatShrinks: bytes read and written by ended processes stay in the sum, even if their pids are reused.
func TestFamilyThatShrinks(t *testing.T) {
	disk := func(read, written int) string {
		return fmt.Sprintf("read_bytes: %d\nwrite_bytes: %d\nsyscr: 1\nsyscw: 1\n", read, written)
	}
	root := tree(t, map[string]string{
		"proc/7/stat": stat(7, 1, 1), "proc/7/io": disk(100, 10), "proc/8/stat": stat(8, 7, 1), "proc/8/io": disk(5000, 70), "proc/11/stat": stat(11, 1, 1),
		"proc/11/io": disk(9, 9),
	})
	f := NewFamily()
	f.os = newLinux(root)
	defer f.Close()
	for i, step := range []struct {
		what          string
		files         map[string]string
		gone          []string
		read, written float64
	}{
		{"two", nil, nil, 5100, 80},
		{"both read on", map[string]string{"proc/7/io": disk(150, 10), "proc/8/io": disk(6000, 75)}, nil, 6150, 85},
		{"one has ended", map[string]string{"proc/7/io": disk(160, 11)}, []string{"proc/8"}, 6160, 86},
		{"that is known", nil, nil, 6160, 86},
		{"another has its number", map[string]string{"proc/8/stat": stat(8, 7, 1), "proc/8/io": disk(7000, 1)}, nil, 13160, 87},
		{"and another one", map[string]string{"proc/8/io": disk(20, 0)}, nil, 13180, 87},
	} {
		remove(t, root, step.gone...)
		write(t, root, step.files)
		p := f.Sample(7, event.Time(i+1)*relistInterval)
		if p.ReadSum != event.MeasuredValue(step.read) || p.WriteSum != event.MeasuredValue(step.written) {
			t.Errorf("%s: %v were read and %v written, want %v and %v", step.what, p.ReadSum, p.WriteSum, step.read, step.written)
		}
	}
	remove(t, root, "proc/7")
	if p := f.Sample(7, 10*relistInterval); p.ReadSum.OK() || len(f.roots) != 0 {
		t.Errorf("after all have ended it reports %+v, of %d processes", p, len(f.roots))
	}
}

func TestFamilyWithoutPermission(t *testing.T) {
	secret := event.Absent(event.NotPermitted)
	for _, tt := range []struct{ a, b, want event.Reading }{
		{event.MeasuredValue(1), event.MeasuredValue(2), event.MeasuredValue(3)},
		{event.MeasuredValue(1), secret, secret},
		{secret, event.MeasuredValue(1), secret},
		{event.MeasuredValue(1), event.Absent(event.NotYet), event.MeasuredValue(1)},
		{event.Absent(event.NotYet), event.MeasuredValue(1), event.Absent(event.NotYet)},
		{event.Absent(event.NotReported), event.MeasuredValue(1), event.Absent(event.NotReported)},
	} {
		if got := addReadings(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v are %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// remove deletes folders below root.
func remove(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
}
