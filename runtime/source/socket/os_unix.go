//go:build unix

package socket

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockEvery is the retry interval for a locked folder.
const lockEvery = 10 * time.Millisecond

// errHeld means that another program has locked the folder for too long.
var errHeld = errors.New("another program has locked it")

// lock locks a folder against other engines that are about to listen in it. It waits until ctx ends, at most
// maxLockWait.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxLockWait, errHeld)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			select {
			case <-time.After(lockEvery):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		_ = f.Close()
		return nil, err
	}
}

// isSocket reports whether a file is a socket.
func isSocket(info os.FileInfo) bool { return info.Mode()&os.ModeSocket != 0 }

// refusedOnWindows returns false: on Unix there is only one error for a refused connection.
func refusedOnWindows(error) bool { return false }

// writableByOthers are the permission bits that the well-known folder must not have.
const writableByOthers os.FileMode = 0o022

// ownedBy returns the owner of a file, and whether this process runs as that user.
func ownedBy(info os.FileInfo) (owner int, own bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, false
	}
	return int(s.Uid), int(s.Uid) == os.Geteuid()
}
