//go:build unix

package socket

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock holds a folder against other engines that are about to listen in it.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// isSocket reports whether a file is a socket.
func isSocket(info os.FileInfo) bool { return info.Mode()&os.ModeSocket != 0 }

// refusedOnWindows is false: here refusal has one error only.
func refusedOnWindows(error) bool { return false }
