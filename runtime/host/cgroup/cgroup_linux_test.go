package cgroup

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// mounts are lines of mountinfo.
const (
	hybrid = "23 1 8:1 / / rw - ext4 /dev/root rw\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	unified   = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
	container = "35 31 0:32 /docker/a1 /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n" +
		"32 31 0:29 /docker/a1 /sys/fs/cgroup/cpu ro,relatime - cgroup cgroup rw,cpu\n"
	psi = "some avg10=0.00 avg60=0.00 avg300=0.00 total="
)

// seen holds the limits of a process.
type seen struct {
	memory        [2]int64 // limit, used
	room          int64
	cores         float64
	throttled     uint64
	hits, stalled uint64
	own           bool // the stall is that of the group
	refaults      uint64
	ownRefaults   bool
}

func see(g *Groups) (s seen) {
	g.Update()
	s.memory[0], s.memory[1], _ = g.Memory()
	s.room, _ = g.Room()
	s.cores, _ = g.Quota()
	s.throttled, _ = g.Throttled()
	s.hits, _ = g.LimitHits()
	s.stalled, s.own, _ = g.Pressure("memory")
	s.refaults, s.ownRefaults, _ = g.Refaults()
	return s
}

// TestLimits covers trees of version 1, version 2 and both, groups within groups, and name spaces. Of nested groups the
// tightest counts.
func TestLimits(t *testing.T) {
	v2 := map[string]string{
		"proc/9/cgroup": "0::/a.slice/b c.scope\n", "proc/self/mountinfo": unified,
		"sys/fs/cgroup/a.slice/memory.max":                "1000\n",
		"sys/fs/cgroup/a.slice/memory.high":               "max\n",
		"sys/fs/cgroup/a.slice/memory.current":            "900\n",
		"sys/fs/cgroup/a.slice/memory.stat":               "anon 100\nfile 800\ninactive_file 500\nactive_file 200\nslab x\n",
		"sys/fs/cgroup/a.slice/memory.events":             "low 0\nhigh 1\nmax 20\noom 0\n",
		"sys/fs/cgroup/a.slice/cpu.max":                   "50000 100000\n",
		"sys/fs/cgroup/a.slice/cpu.stat":                  "usage_usec 9\nthrottled_usec 70\n",
		"sys/fs/cgroup/a.slice/b c.scope/memory.max":      "max\n",
		"sys/fs/cgroup/a.slice/b c.scope/memory.high":     "2000\n",
		"sys/fs/cgroup/a.slice/b c.scope/memory.current":  "850\n",
		"sys/fs/cgroup/a.slice/b c.scope/memory.events":   "high 300\nmax 0\n",
		"sys/fs/cgroup/a.slice/b c.scope/memory.pressure": psi + "77\n",
		"sys/fs/cgroup/a.slice/b c.scope/cgroup.events":   "populated 1\n",
		"sys/fs/cgroup/a.slice/b c.scope/cpu.max":         "150000 100000\n",
		"sys/fs/cgroup/a.slice/b c.scope/cpu.stat":        "throttled_usec 5\n",
		"proc/pressure/memory":                            psi + "1000\n",
		"proc/vmstat":                                     "workingset_refault_file 7\n",
	}
	v1 := map[string]string{
		"proc/9/cgroup":       "8:name=systemd:/x\n4:memory:/pod/one\n2:cpu,cpuacct:/pod/one\n0::/\n",
		"proc/self/mountinfo": hybrid,

		"sys/fs/cgroup/memory/memory.limit_in_bytes":         "9223372036854771712\n",
		"sys/fs/cgroup/memory/memory.usage_in_bytes":         "5000\n",
		"sys/fs/cgroup/memory/pod/memory.limit_in_bytes":     "600\n",
		"sys/fs/cgroup/memory/pod/memory.usage_in_bytes":     "500\n",
		"sys/fs/cgroup/memory/pod/memory.failcnt":            "41\n",
		"sys/fs/cgroup/memory/pod/memory.stat":               "inactive_file 1\ntotal_inactive_file 50\ntotal_active_file 50\n",
		"sys/fs/cgroup/memory/pod/one/memory.limit_in_bytes": "800\n",
		"sys/fs/cgroup/memory/pod/one/memory.usage_in_bytes": "750\n",
		"sys/fs/cgroup/memory/pod/one/memory.failcnt":        "1\n",
		"sys/fs/cgroup/memory/pod/one/memory.stat":           "workingset_refault_file 1\ntotal_workingset_refault_file 5\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":         "-1\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":        "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.stat":                 "throttled_time 999\n",
		"sys/fs/cgroup/cpu,cpuacct/pod/one/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu,cpuacct/pod/one/cpu.cfs_period_us": "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/pod/one/cpu.stat": "nr_throttled 3\nthrottled_time 12000\n",
		"sys/fs/cgroup/unified/memory.pressure":      psi + "3\n",
		"proc/pressure/memory":                       psi + "1000\n",
	}
	with := func(base map[string]string, more ...string) map[string]string {
		files := maps.Clone(base)
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  seen
	}{
		"nothing":       {nil, seen{}},
		"no group":      {map[string]string{"proc/9/cgroup": "", "proc/self/mountinfo": hybrid}, seen{}},
		"not mounted":   {map[string]string{"proc/9/cgroup": "0::/a\n", "proc/self/mountinfo": "23 1 8:1 / / rw - ext4 /dev/root rw\n"}, seen{}},
		"bad mountinfo": {with(v2, "proc/self/mountinfo", "x y\n"), seen{stalled: 1000, refaults: 7}},
		"v2, limits above and of its own": {v2, seen{
			memory: [2]int64{1000, 900}, room: 800, cores: 0.5, throttled: 75000, hits: 321, stalled: 77, own: true, refaults: 7,
		}},
		"v2, memory.high is lower": {with(v2, "sys/fs/cgroup/a.slice/b c.scope/memory.high", "400\n"), seen{
			memory: [2]int64{400, 850}, room: 0, cores: 0.5, throttled: 75000, hits: 321, stalled: 77, own: true, refaults: 7,
		}},
		"v1 beside v2": {v1, seen{memory: [2]int64{600, 500}, room: 50, cores: 0.5, throttled: 12000, hits: 42, stalled: 1000, refaults: 5, ownRefaults: true}},
		"v1 in a container without a name space": {
			with(v1, "proc/9/cgroup", "4:memory:/docker/a1/x\n2:cpu:/docker/a1\n0::/docker/a1\n", "proc/self/mountinfo", container,
				"sys/fs/cgroup/memory/x/memory.limit_in_bytes", "300\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes", "200\n",
				"sys/fs/cgroup/memory/x/memory.failcnt", "0\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n",
				"sys/fs/cgroup/cpu/cpu.stat", "throttled_time 8\n"),
			seen{memory: [2]int64{300, 200}, room: 100, cores: 2, throttled: 8, stalled: 1000},
		},
		"another group of the same name's beginning": {
			map[string]string{"proc/9/cgroup": "4:memory:/docker/a12\n", "proc/self/mountinfo": container, "sys/fs/cgroup/memory/memory.limit_in_bytes": "5\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n"},
			seen{},
		},
		"outside the name space of llmtop": {
			map[string]string{
				"proc/9/cgroup": "0::/../other\n", "proc/self/mountinfo": unified, "sys/fs/cgroup/memory.max": "5\n", "sys/fs/cgroup/memory.current": "1\n",
				"proc/9/mountinfo":                     "41 31 0:38 /../other /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
				"proc/9/root/sys/fs/cgroup/memory.max": "1000\n", "proc/9/root/sys/fs/cgroup/memory.current": "400\n", "proc/9/root/sys/fs/cgroup/memory.events": "max 2\n",
				"proc/9/root/sys/fs/cgroup/cpu.max": "max 100000\n",
			},
			seen{memory: [2]int64{1000, 400}, room: 600, hits: 2},
		},
		"no numbers": {with(v2, "sys/fs/cgroup/a.slice/memory.max", "many", "sys/fs/cgroup/a.slice/cpu.max", "", "sys/fs/cgroup/a.slice/b c.scope/cpu.max", "-1 x\n",
			"sys/fs/cgroup/a.slice/b c.scope/memory.high", "-5\n"), seen{stalled: 77, own: true, refaults: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := see(Of(tree(t, c.files), 9, nil).reading()); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestMove checks that the groups follow a process that moves, and that one that has ended has no limits.
func TestMove(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/9/cgroup": "0::/a\n", "proc/self/mountinfo": unified,
		"sys/fs/cgroup/a/memory.max": "10\n", "sys/fs/cgroup/a/memory.current": "1\n",
		"sys/fs/cgroup/b/memory.max": "20\n", "sys/fs/cgroup/b/memory.current": "2\n",
	})
	g := Of(root, 9, nil).reading()
	if got := see(g).memory; got != ([2]int64{10, 1}) {
		t.Errorf("first %+v", got)
	}
	write(t, root, "proc/9/cgroup", "0::/b\n")
	if got := see(g).memory; got != ([2]int64{20, 2}) {
		t.Errorf("then %+v", got)
	}
	if err := os.RemoveAll(filepath.Join(root, "proc/9")); err != nil {
		t.Fatal(err)
	}
	if got := see(g); got != (seen{}) {
		t.Errorf("after its end %+v", got)
	}
}

// TestRealGroups makes groups with limits, two levels deep, puts a process into them and reads its limits: in every tree
// of this machine that this user may write to.
func TestRealGroups(t *testing.T) {
	for name, limits := range map[string][4][2]string{ // of the group of the process, and of the group above it
		"memory": {{"memory.limit_in_bytes", "400000000"}, {"memory.limit_in_bytes", "300001280"}, {"memory.max", "400003072"}, {"memory.max", "300003328"}},
		"cpu":    {{"cpu.cfs_quota_us", "150000"}, {"cpu.cfs_quota_us", "50000"}, {"cpu.max", "150000 100000"}, {"cpu.max", "50000 100000"}},
	} {
		t.Run(name, func(t *testing.T) {
			self := Of("/", os.Getpid(), nil).reading()
			self.Update()
			h := map[string]*hierarchy{"memory": &self.memory, "cpu": &self.cpu}[name]
			if len(h.folders) == 0 {
				t.Skipf("no tree with the controller %s can be seen", name)
			}
			mount := "/" + h.folders[len(h.folders)-1]
			above := filepath.Join(mount, "llmtop-test-"+strconv.Itoa(os.Getpid()))
			group := filepath.Join(above, "inner")
			if err := os.MkdirAll(group, 0o755); err != nil {
				t.Skipf("no group can be made: %v", err)
			}
			t.Cleanup(func() { _, _ = os.Remove(group), os.Remove(above) })
			rows := limits[:2]
			if !h.v1 {
				rows = limits[2:]
				if err := errors.Join(enable(mount, name), enable(above, name)); err != nil {
					t.Skipf("the controller %s cannot be enabled: %v", name, err)
				}
			}
			set(t, filepath.Join(above, rows[1][0]), rows[1][1])
			if h.v1 {
				rows[0][1] = rows[1][1] // version 1 allows no quota above that of the group above
			}
			set(t, filepath.Join(group, rows[0][0]), rows[0][1])
			sleep := exec.Command("sleep", "600")
			if err := sleep.Start(); err != nil {
				t.Skipf("no sleep to limit: %v", err)
			}
			t.Cleanup(func() { _, _ = sleep.Process.Kill(), sleep.Wait() })
			set(t, filepath.Join(group, "cgroup.procs"), strconv.Itoa(sleep.Process.Pid))
			got := see(Of("/", sleep.Process.Pid, nil).reading())
			if name == "cpu" && got.cores != 0.5 {
				t.Errorf("%v cores, want 0.5", got.cores)
			}
			if name == "memory" && (got.memory[0] < 299e6 || got.memory[0] > 301e6 || got.room > got.memory[0]) {
				t.Errorf("%+v, want a limit of 300 MB", got)
			}
		})
	}
}

func enable(group, controller string) error {
	return os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
}

func set(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reading lets groups read the files below their root.
func (g *Groups) reading() *Groups {
	g.read = func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(g.root, name)) }
	return g
}

// tree writes files to a new temporary folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "proc/7/stat", "")
	for name, content := range files {
		write(t, root, strings.Replace(name, "proc/self/", "proc/7/", 1), content)
	}
	if err := os.Symlink("7", filepath.Join(root, "proc/self")); err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
