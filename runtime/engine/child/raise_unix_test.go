//go:build unix

package child

import (
	"os"
	"syscall"
)

// raise sends this process the signal for a fault.
func raise(fault string) error {
	s := map[string]syscall.Signal{"abort": syscall.SIGABRT, "crash": syscall.SIGSEGV, "die": syscall.SIGKILL}[fault]
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		return err
	}
	select {}
}
