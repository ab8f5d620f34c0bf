package socket

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock does nothing: Windows cannot lock folders. If two engines replace a dead one at the same moment, the socket of
// the second stays.
func lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }

// isSocket returns true for all but regular files and folders: on Windows sockets are reparse points, which Go reports
// as irregular files.
func isSocket(info os.FileInfo) bool { return !info.Mode().IsRegular() && !info.IsDir() }

// refusedOnWindows reports whether a connection was refused.
func refusedOnWindows(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// writableByOthers is 0: Windows uses access control lists, and %LOCALAPPDATA% belongs to the user.
const writableByOthers os.FileMode = 0

// ownedBy returns true for every file: see writableByOthers.
func ownedBy(os.FileInfo) (owner int, own bool) { return -1, true }
