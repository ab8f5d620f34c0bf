//go:build unix

package socket

import (
	"os"
	"syscall"
)

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
