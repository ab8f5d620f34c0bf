//go:build unix

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signal returns the name of the signal that ended a process, or "".
func signal(s *os.ProcessState) string {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		if name := unix.SignalName(status.Signal()); name != "" {
			return name
		}
		return status.Signal().String()
	}
	return ""
}
