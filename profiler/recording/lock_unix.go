//go:build unix

package recording

import (
	"errors"
	"os"
	"syscall"
)

// lock locks the file for this process until it is closed; false if another process holds the lock. File systems
// without locks count as locked.
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
