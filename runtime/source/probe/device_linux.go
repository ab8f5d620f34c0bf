//go:build amd64 || arm64

package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/host"
)

// openMinors returns the numbers of the NVIDIA GPUs that a process has open.
func openMinors(root string, pid int) map[string]bool {
	minors := make(map[string]bool)
	fds := filepath.Join(root, "proc", fmt.Sprint(pid), "fd")
	entries, _ := os.ReadDir(fds)
	for _, e := range entries {
		name, _ := os.Readlink(filepath.Join(fds, e.Name()))
		if minor, ok := strings.CutPrefix(name, "/dev/nvidia"); ok && strings.Trim(minor, "0123456789") == "" {
			minors[minor] = true // not nvidiactl
		}
	}
	return minors
}

// startsGPU reports whether a process has not opened an NVIDIA GPU yet, although it could.
func startsGPU(root string, pid int) bool {
	_, err := os.Stat(filepath.Join(root, "proc", fmt.Sprint(pid), "root/dev/nvidiactl"))
	return err == nil && len(openMinors(root, pid)) == 0
}

// openGPUs names the NVIDIA GPUs that a process has open, as "NVIDIA H200" or "2 x NVIDIA H200"; "" if it has none, or
// the driver does not name one of them. root is the root of the file system.
func openGPUs(root string, pid int) string {
	minors := openMinors(root, pid)
	first, found := "", 0
	files, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	for _, file := range files {
		if fields := host.Fields(file, ""); minors[fields["Device Minor"]] {
			if found++; first == "" {
				first = clean.Line(fields["Model"])
			}
		}
	}
	switch {
	case found == 0 || found < len(minors) || first == "":
		return ""
	case found > 1:
		return fmt.Sprintf("%d x %s", found, first)
	}
	return first
}
