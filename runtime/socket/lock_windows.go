package socket

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock does nothing: folders cannot be locked here. Of two engines that take the place of a dead one at the same moment, the
// second one's socket stays.
func lock(string) (unlock func(), err error) { return func() {}, nil }

// isSocket is true for whatever is no plain file or folder: sockets are reparse points here, which Go tells as irregular files.
func isSocket(info os.FileInfo) bool { return !info.Mode().IsRegular() && !info.IsDir() }

// refusedOnWindows reports whether nobody listens.
func refusedOnWindows(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }
