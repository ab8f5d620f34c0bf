package native

import (
	"os"
	"strconv"
	"strings"
)

// cgroupFiles are limit and use of the group that a container's processes see as the root, in both versions.
var cgroupFiles = [][2]string{
	{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
	{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
}

// cgroupRoom is what a container's limit leaves, in bytes; otherwise where there is no limit.
func cgroupRoom(otherwise int64) int64 {
	for _, files := range cgroupFiles {
		limit, ok := readNumber(files[0])
		used, known := readNumber(files[1])
		if ok && known {
			return max(limit-used, 0)
		}
	}
	return otherwise
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
