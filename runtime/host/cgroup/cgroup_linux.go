package cgroup

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Read returns the content of a file, by its path below the root of the file system. The content is valid until the next
// call.
type Read func(name string) ([]byte, error)

// Groups are the control groups of one process. It is not safe for concurrent use.
type Groups struct {
	root       string
	dir        string // of the process in /proc, with a slash at the end
	pid        int
	read       Read
	membership []byte // the content of /proc/PID/cgroup that the fields below follow from

	memory, cpu hierarchy
	unified     hierarchy
	limited     []limitedGroup
	quota       float64  // the tightest, in cores; 0 without one
	throttled   []string // files with the throttled time of the groups with a quota
	hits        []string // files that count how often the groups with a memory limit reached it
	accounted   bool     // the group in the tree of version 2 is not its root, which is the whole machine
}

// hierarchy is the part of a tree of groups that matters to a process.
type hierarchy struct {
	folders []string // the group of the process first, then those above it
	v1      bool
}

// Of returns the groups of a process of the system whose file system is at root.
func Of(root string, pid int, read Read) *Groups {
	return &Groups{root: root, dir: filepath.Join("proc", strconv.Itoa(pid)) + "/", pid: pid, read: read}
}

// Update finds the groups of the process again if it has moved, and reads their limits and the memory they use. It must
// be called before the other methods, and whenever these may have changed. Without a readable group, no limit is known.
func (g *Groups) Update() {
	if now, err := g.read(g.dir + "cgroup"); err != nil || !bytes.Equal(now, g.membership) {
		g.membership = bytes.Clone(now)
		g.find()
	}
	g.throttled, g.quota = g.throttled[:0], 0
	for _, folder := range g.cpu.folders {
		if quota := g.cpu.quota(g.read, folder); quota > 0 {
			g.throttled = append(g.throttled, folder+"/cpu.stat")
			if g.quota == 0 || quota < g.quota {
				g.quota = quota
			}
		}
	}
	g.findLimited()
	g.hits = g.hits[:0]
	for _, m := range g.limited {
		g.hits = append(g.hits, m.folder+g.memory.memoryFiles().hits)
	}
}

// find finds the folders of the groups.
func (g *Groups) find() {
	g.memory, g.cpu, g.unified, g.accounted = hierarchy{}, hierarchy{}, hierarchy{}, false
	fs, err := procfs.NewFS(filepath.Join(g.root, "proc"))
	if err != nil {
		return
	}
	process, err := fs.Proc(g.pid)
	if err != nil {
		return
	}
	groups, err := process.Cgroups()
	if err != nil {
		return
	}
	var places []place
	if self, err := fs.Self(); err == nil {
		places = append(places, mountsOf(self, ""))
	}
	places = append(places, mountsOf(process, g.dir+"root"))
	g.memory, g.cpu, g.unified = locate(places, groups, "memory"), locate(places, groups, "cpu"), locate(places, groups, "")
	if g.accounted = len(g.unified.folders) > 0; g.accounted {
		_, err := g.read(g.unified.folders[0] + "/cgroup.events") // the root has none
		g.accounted = err == nil
	}
}

// place is where groups may be mounted: as this process sees it, or the process that is looked at.
type place struct {
	prefix string
	mounts []*procfs.MountInfo
}

func mountsOf(p procfs.Proc, prefix string) place {
	mounts, _ := p.MountInfo() // without permission there are none
	return place{prefix, mounts}
}

// locate returns the folders of the groups that have a controller: in the tree of version 1 that has it, otherwise in
// that of version 2. No controller means the tree of version 2.
func locate(places []place, groups []procfs.Cgroup, controller string) hierarchy {
	var h hierarchy
	path, kind, found := "", "cgroup2", false
	for _, c := range groups {
		switch {
		case controller != "" && slices.Contains(c.Controllers, controller):
			path, kind, found, h.v1 = c.Path, "cgroup", true, true
		case c.HierarchyID == 0 && !h.v1:
			path, found = c.Path, true
		}
	}
	for _, at := range places {
		for _, m := range at.mounts {
			_, has := m.SuperOptions[controller]
			rest, below := under(unescape.Replace(m.Root), path)
			if !found || !below || m.FSType != kind || h.v1 && !has {
				continue
			}
			if folders := upwards(at.prefix+unescape.Replace(m.MountPoint), rest); len(folders) > len(h.folders) {
				h.folders = folders
			}
		}
		if len(h.folders) > 0 {
			break
		}
	}
	return h
}

// unescape restores the characters that mountinfo writes as octal numbers.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// under returns the part of path below root; false if it is not below. Groups outside the name space of this process
// begin with "/..": nothing is known of the groups between them and others.
func under(root, path string) (rest string, ok bool) {
	if root == "/" {
		return path, !strings.HasPrefix(path, "/..")
	}
	rest, ok = strings.CutPrefix(path, root)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// upwards returns the folder of a group and the folders of those above it up to the mount point, without the leading
// slash.
func upwards(mount, group string) (folders []string) {
	mount = filepath.Clean("/" + mount)
	for folder := filepath.Join(mount, group); ; folder = filepath.Dir(folder) {
		folders = append(folders, folder[1:])
		if len(folder) <= len(mount) {
			return folders
		}
	}
}

// memoryFiles names the files of a group. Source: the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
type memoryFiles struct {
	limits           []string // above memory.high the group is slowed down, at memory.max it is out of memory
	used, stat, hits string
	reclaimable      []string // keys of stat that count file pages
	refaults         string   // key of stat that counts file pages that were read again after they had been evicted
}

var memoryV1, memoryV2 = memoryFiles{
	[]string{"/memory.limit_in_bytes"},
	"/memory.usage_in_bytes", "/memory.stat", "/memory.failcnt",
	[]string{"total_inactive_file", "total_active_file"},
	"total_workingset_refault_file",
}, memoryFiles{
	[]string{"/memory.max", "/memory.high"},
	"/memory.current", "/memory.stat", "/memory.events",
	[]string{"inactive_file", "active_file"},
	"workingset_refault_file",
}

func (h *hierarchy) memoryFiles() *memoryFiles {
	if h.v1 {
		return &memoryV1
	}
	return &memoryV2
}

// Memory returns the lowest limit of memory, and how much of it its group uses, in bytes; false if no group has one. File
// pages count, which are freed when needed.
func (g *Groups) Memory() (limit, used int64, ok bool) {
	for _, m := range g.limited {
		if !ok || m.limit < limit {
			limit, used, ok = m.limit, m.used, true
		}
	}
	return limit, used, ok
}

// Room returns how many bytes the process may use besides those in use, with the file pages that can be freed: the least
// that any of its groups leaves. It returns false without a limit.
func (g *Groups) Room() (bytes int64, ok bool) {
	files := g.memory.memoryFiles()
	for _, m := range g.limited {
		var cached int64
		if stat, err := g.read(m.folder + files.stat); err == nil {
			for _, key := range files.reclaimable {
				n, _ := Keyed(stat, key)
				cached += int64(min(n, unlimited))
			}
		}
		if room := max(m.limit-max(m.used-cached, 0), 0); !ok || room < bytes {
			bytes, ok = room, true
		}
	}
	return bytes, ok
}

// unlimited is more memory than any limit; without a limit, version 1 reports the largest number of pages.
const unlimited = 1 << 62

// limitedGroup is a group with a limit of memory.
type limitedGroup struct {
	folder      string
	limit, used int64 // bytes
}

// findLimited finds the groups with a limit of memory.
func (g *Groups) findLimited() {
	files := g.memory.memoryFiles()
	g.limited = g.limited[:0]
	for _, folder := range g.memory.folders {
		m := limitedGroup{folder: folder, limit: math.MaxInt64}
		for _, file := range files.limits {
			if n, ok := g.number(folder + file); ok {
				m.limit = min(m.limit, n)
			}
		}
		if m.limit >= unlimited {
			continue
		}
		if n, ok := g.number(folder + files.used); ok {
			m.used = n
			g.limited = append(g.limited, m)
		}
	}
}

// Quota returns the cores that the process may use by the tightest quota; false without a quota.
func (g *Groups) Quota() (cores float64, ok bool) { return g.quota, g.quota > 0 }

// quota returns the quota of a group in cores; 0 without one.
func (h *hierarchy) quota(read Read, folder string) float64 {
	var f []string
	if h.v1 {
		for _, name := range []string{"/cpu.cfs_quota_us", "/cpu.cfs_period_us"} {
			raw, _ := read(folder + name) // fields are missing without the file
			f = append(f, strings.Fields(string(raw))...)
		}
	} else {
		raw, _ := read(folder + "/cpu.max") // "QUOTA PERIOD"
		f = strings.Fields(string(raw))
	}
	if len(f) != 2 {
		return 0
	}
	quota, err := strconv.ParseFloat(f[0], 64) // "max" or -1 without a limit
	period, err2 := strconv.ParseFloat(f[1], 64)
	if err != nil || err2 != nil || !(quota > 0) || !(period > 0) {
		return 0
	}
	return quota / period
}

// Throttled returns how long the groups with a quota have been throttled, in ns: summed over groups, and over the cores
// on which they had runnable threads. It returns false if no group can be read.
func (g *Groups) Throttled() (ns uint64, ok bool) {
	for _, name := range g.throttled {
		stat, err := g.read(name)
		if err != nil {
			return 0, false
		}
		v1, _ := Keyed(stat, "throttled_time")
		v2, _ := Keyed(stat, "throttled_usec")
		ns += v1 + 1000*v2
	}
	return ns, len(g.cpu.folders) > 0
}

// LimitHits returns how often the groups with a memory limit have reached it; false if no group can be read.
func (g *Groups) LimitHits() (n uint64, ok bool) {
	for _, name := range g.hits {
		raw, err := g.read(name)
		if err != nil {
			return 0, false
		}
		if g.memory.v1 {
			failed, _ := parseCount(bytes.TrimSpace(raw))
			n += failed
			continue
		}
		atMax, _ := Keyed(raw, "max")
		atHigh, _ := Keyed(raw, "high")
		n += atMax + atHigh
	}
	return n, len(g.memory.folders) > 0
}

// Refaults returns how many file pages were read again after they had been evicted: by the group of the process, or by
// the machine if the group has no such account.
func (g *Groups) Refaults() (pages uint64, own, ok bool) {
	if files := g.memory.memoryFiles(); len(g.memory.folders) > 0 {
		if raw, err := g.read(g.memory.folders[0] + files.stat); err == nil {
			if pages, ok = Keyed(raw, files.refaults); ok {
				return pages, true, true
			}
		}
	}
	raw, err := g.read("proc/vmstat")
	if err != nil {
		return 0, false, false
	}
	pages, ok = Keyed(raw, memoryV2.refaults)
	return pages, false, ok
}

// Pressure returns the time in which some task waited for a resource ("cpu", "memory" or "io"), in µs: of the group of
// the process, or of the machine if the group has no such account.
func (g *Groups) Pressure(resource string) (us uint64, own, ok bool) {
	if g.accounted {
		if raw, err := g.read(g.unified.folders[0] + "/" + resource + ".pressure"); err == nil {
			us, ok = ParsePressure(raw)
			return us, true, ok
		}
	}
	raw, err := g.read("proc/pressure/" + resource)
	if err != nil {
		return 0, false, false
	}
	us, ok = ParsePressure(raw)
	return us, false, ok
}

// number reads a file that holds one number; false if it is missing or holds a word such as "max".
func (g *Groups) number(name string) (int64, bool) {
	raw, err := g.read(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	return n, err == nil && n >= 0
}
