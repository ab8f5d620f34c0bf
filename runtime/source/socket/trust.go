package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// ErrUntrusted means that another user created or can write to the well-known folder, or owns a socket in it.
var ErrUntrusted = errors.New("not used")

// trusted returns an error if another user may have created what is at the address. Only the well-known folder is
// checked: its name can be guessed, and in /tmp any user can create it first. Other paths are the user's choice. What
// does not exist is trusted.
func (a address) trusted() error {
	if !a.wellKnown() {
		return nil
	}
	if err := trustedFolder(Folder()); err != nil {
		return err
	}
	info, err := os.Lstat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s is %w: %w", a.path, ErrUntrusted, err)
	case !isSocket(info):
		return fmt.Errorf("%s is %w: it is %s, not a socket: remove it", a.path, ErrUntrusted, typeName(info))
	}
	if owner, own := ownedBy(info); !own {
		return fmt.Errorf("%s is %w: it belongs to user %d: remove it", a.path, ErrUntrusted, owner)
	}
	return nil
}

// wellKnown reports whether a socket is in the well-known folder.
func (a address) wellKnown() bool {
	path, err := filepath.Abs(a.path)
	return a.network == "unix" && err == nil && filepath.Dir(path) == filepath.Clean(Folder())
}

// trustedFolder checks the well-known folder itself.
func trustedFolder(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	why := ""
	if err == nil {
		owner, own := ownedBy(info)
		switch {
		case !info.IsDir():
			why = fmt.Sprintf("it is %s: remove it, or set XDG_RUNTIME_DIR to a folder of your own", typeName(info))
		case !own:
			why = fmt.Sprintf("it belongs to user %d: set XDG_RUNTIME_DIR to a folder of your own", owner)
		case info.Mode().Perm()&writableByOthers != 0:
			why = fmt.Sprintf("other users may write to it: chmod 700 %s", dir)
		}
	} else {
		why = err.Error()
	}
	if why != "" {
		return fmt.Errorf("folder %s is %w: %s", dir, ErrUntrusted, why)
	}
	return nil
}

// typeName names the type of a file.
func typeName(info os.FileInfo) string {
	switch mode := info.Mode(); {
	case mode&os.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a folder"
	case mode.IsRegular():
		return "a file"
	}
	return "a special file"
}

// dial connects to an address, unless it is in an untrusted well-known folder.
func dial(ctx context.Context, a address) (net.Conn, error) {
	if err := a.trusted(); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, a.network, a.path)
}
