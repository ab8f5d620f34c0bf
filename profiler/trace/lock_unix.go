//go:build unix

package trace

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process alone until it is closed; false if another one has it. File systems without locks let it pass.
func lock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
		return true, nil
	}
	return err == nil, err
}
