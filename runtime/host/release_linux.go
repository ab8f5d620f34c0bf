package host

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseProgram gives back the resident pages of llmtop's own file. Starting needs much of its code and tables once only.
// What is needed again comes back from the page cache, 64 KB at a time. Mappings with pages that were ever written, as
// those that the dynamic linker has relocated, stay as they are: their content is not in the file.
func ReleaseProgram() error {
	file, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find llmtop's file: %w", err)
	}
	raw, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read llmtop's mappings: %w", err)
	}
	for _, m := range unwritten(string(raw), file) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m[0], m[1]-m[0], unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("release llmtop's file: %w", os.NewSyscallError("madvise", errno))
		}
	}
	return nil
}

// unwritten returns the begin and end of the mappings of a file, in the format of /proc/PID/smaps, that cannot be written to
// and have no page of their own.
func unwritten(smaps, file string) (found [][2]uintptr) {
	var at [2]uintptr
	candidate := false
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case !strings.HasSuffix(f[0], ":"): // the first line of a mapping
			_, err := fmt.Sscanf(f[0], "%x-%x", &at[0], &at[1])
			candidate = err == nil && strings.HasSuffix(line, " "+file+"\n") && strings.HasPrefix(f[1], "r-")
		case f[0] == "Anonymous:":
			candidate = candidate && f[1] == "0"
		case candidate && f[0] == "Swap:" && f[1] == "0": // comes last
			found = append(found, at)
		}
	}
	return found
}
