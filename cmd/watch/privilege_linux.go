package watch

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// DropRoot makes this process run as the user who called sudo, once what needs root is open: it stays open. Without
// sudo it does nothing. It also sets the environment that names the user's own folders.
func DropRoot() error {
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || os.Geteuid() != 0 || uid == 0 {
		return nil
	}
	gid, err := strconv.Atoi(os.Getenv("SUDO_GID"))
	if err != nil {
		return fmt.Errorf("drop privileges: read SUDO_GID: %w", err)
	}
	for _, step := range []func() error{
		func() error { return syscall.Setgroups([]int{gid}) },
		func() error { return syscall.Setresgid(gid, gid, gid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("drop privileges to user %d: %w", uid, err)
		}
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		os.Setenv("HOME", u.HomeDir)
	}
	if dir := filepath.Join("/run/user", strconv.Itoa(uid)); isFolder(dir) {
		os.Setenv("XDG_RUNTIME_DIR", dir)
	} else {
		os.Unsetenv("XDG_RUNTIME_DIR")
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
