package memory

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Cgroup is the memory accounting of a control group, in bytes.
type Cgroup struct {
	Limit, Used int64 // Used includes file pages, which are freed when needed

	files cgroupFiles
}

// cgroupFiles names the files of the accounting, and the keys of stat that count reclaimable file pages.
type cgroupFiles struct {
	limit, used, stat string
	reclaimable       []string
}

// cgroupVersions are the files that processes in a container see at the root of their control group. Source: the
// kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
var cgroupVersions = []cgroupFiles{
	{
		"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat",
		[]string{"inactive_file", "active_file"},
	},
	{
		"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes",
		"sys/fs/cgroup/memory/memory.stat",
		[]string{"total_inactive_file", "total_active_file"},
	},
}

// ReadCgroup reads the control group of the container whose file system is at root. ok is false without a limit;
// version 1 may report the largest int64 instead.
func ReadCgroup(root string) (c Cgroup, ok bool) {
	for _, files := range cgroupVersions {
		limit, ok := readNumber(filepath.Join(root, files.limit))
		used, found := readNumber(filepath.Join(root, files.used))
		if ok && found {
			return Cgroup{limit, used, files}, true
		}
	}
	return Cgroup{}, false
}

// room returns how many bytes the limit leaves, with the pages that can be freed.
func (c Cgroup) room(root string) int64 { return max(c.Limit-max(c.Used-c.files.cached(root), 0), 0) }

// cached returns how much of the used memory holds reclaimable file pages, in bytes; 0 if not reported.
func (f cgroupFiles) cached(root string) (bytes int64) {
	raw, err := os.ReadFile(filepath.Join(root, f.stat))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains(f.reclaimable, name) {
			bytes += n
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
	return n, err == nil && n >= 0
}
