package host

import (
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// ReleaseProgram gives back the resident pages of llmtop's own file. Starting needs much of its code and tables once only.
// What is needed again comes back from the page cache, 64 KB at a time.
func ReleaseProgram() error {
	self, err := procfs.Self()
	if err != nil {
		return fmt.Errorf("find llmtop's mappings: %w", err)
	}
	file, err := self.Executable()
	if err != nil {
		return fmt.Errorf("find llmtop's file: %w", err)
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return fmt.Errorf("read llmtop's mappings: %w", err)
	}
	for _, m := range maps {
		if m.Pathname != file || m.Perms.Write {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("release llmtop's file: %w", os.NewSyscallError("madvise", errno))
		}
	}
	return nil
}
