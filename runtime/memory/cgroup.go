package memory

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroup names the files of a group of processes that tell about its memory, and in the last of them the pages of files, which are
// counted as used and given back when they are needed.
type cgroup struct {
	limit, used, stat string
	reclaimable       []string
}

// cgroups are those that a container's processes see as the root, in both versions. Source: the kernel's cgroup-v2.rst and
// cgroup-v1/memory.rst.
var cgroups = []cgroup{
	{"memory.max", "memory.current", "memory.stat", []string{"inactive_file", "active_file"}},
	{
		"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat",
		[]string{"total_inactive_file", "total_active_file"},
	},
}

// cgroupRoot is where the system keeps cgroups.
const cgroupRoot = "/sys/fs/cgroup"

// cgroupRoom is what the limit of the container under root leaves, in bytes; otherwise where there is no limit.
func cgroupRoom(root string, otherwise int64) int64 {
	for _, g := range cgroups {
		limit, ok := readNumber(filepath.Join(root, g.limit))
		used, known := readNumber(filepath.Join(root, g.used))
		if ok && known {
			return max(limit-max(used-g.cached(root), 0), 0)
		}
	}
	return otherwise
}

// cached is how much of the used memory holds pages of files, in bytes; 0 where the system does not say.
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

// readNumber reads a file that holds one number; false if there is none, or another word such as "max".
func readNumber(name string) (int64, bool) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return n, err == nil
}
