package memory

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroup names the files with the memory accounting of a control group. reclaimable lists the keys of stat that count
// file pages, which are included in used but are freed when needed.
type cgroup struct {
	limit, used, stat string
	reclaimable       []string
}

// cgroups are the root paths that processes in a container see, of both versions. Source: the kernel's cgroup-v2.rst
// and cgroup-v1/memory.rst.
var cgroups = []cgroup{
	{"memory.max", "memory.current", "memory.stat", []string{"inactive_file", "active_file"}},
	{
		"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat",
		[]string{"total_inactive_file", "total_active_file"},
	},
}

// cgroupRoot is the mount point of control groups.
const cgroupRoot = "/sys/fs/cgroup"

// cgroupRoom returns how many bytes the memory limit of the container under root leaves; otherwise if there is no
// limit.
func cgroupRoom(root string, otherwise int64) int64 {
	for _, g := range cgroups {
		limit, ok := readNumber(filepath.Join(root, g.limit))
		used, found := readNumber(filepath.Join(root, g.used))
		if ok && found {
			return max(limit-max(used-g.cached(root), 0), 0)
		}
	}
	return otherwise
}

// cached returns how much of the used memory holds reclaimable file pages, in bytes; 0 if not reported.
func (g cgroup) cached(root string) (bytes int64) {
	raw, err := os.ReadFile(filepath.Join(root, g.stat))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, key := range g.reclaimable {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && name == key {
				bytes += n
			}
		}
	}
	return bytes
}

// readNumber reads a file that holds one number; false if it is missing or holds a word such as "max".
func readNumber(name string) (int64, bool) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return n, err == nil
}
