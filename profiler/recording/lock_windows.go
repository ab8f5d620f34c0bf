package recording

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock locks the file for this process until it is closed; false if another process holds the lock. Windows locks bar
// others from reading, so it locks one byte far behind the end of the file.
func lock(f *os.File) (bool, error) {
	behind := &windows.Overlapped{OffsetHigh: 1 << 30}
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}
