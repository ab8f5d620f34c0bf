package socket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/llmtop/llmtop/runtime/host"
)

// ErrInUse means that a live engine listens at the address.
var ErrInUse = errors.New("in use")

// ErrToken means that a token is missing or wrong.
var ErrToken = errors.New("token")

// shortTimeout is the timeout for operations that should complete at once.
const shortTimeout = time.Second

// maxLockWait limits how long an engine waits to lock a folder. Others may lock it one after the other, and each may
// probe old sockets for shortTimeout.
const maxLockWait = 10 * shortTimeout

// open listens at an address.
func open(ctx context.Context, a address, token string) (net.Listener, error) {
	if a.network == "tcp" {
		if !a.loopback() && token == "" {
			return nil, fmt.Errorf("listen at %v: other machines can reach this address, so it needs a %w", a, ErrToken)
		}
		l, err := net.Listen("tcp", a.path)
		if err != nil {
			return nil, fmt.Errorf("listen at %v: %w", a, err)
		}
		return l, nil
	}
	return openUnix(ctx, a)
}

// openUnix creates the socket, and its folder if needed, for this user only. It locks the folder meanwhile, so that
// only one of two engines can replace a dead one's socket.
func openUnix(ctx context.Context, a address) (net.Listener, error) {
	dir := filepath.Dir(a.path)
	made := os.MkdirAll(dir, 0o700)
	if err := cmp.Or(a.trusted(), made); err != nil {
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("listen at %v: lock folder %s: %w", a, dir, err)
	}
	defer unlock()
	if err := reclaim(a); err != nil {
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	// No one can connect before the mode is set: only then the socket gets its final name.
	hidden := filepath.Join(dir, fmt.Sprintf(".%d", os.Getpid()))
	_ = os.Remove(hidden)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	l.SetUnlinkOnClose(false) // it gets renamed
	err = os.Chmod(hidden, 0o600)
	if err == nil {
		err = os.Rename(hidden, a.path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(hidden)
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	return &unixListener{UnixListener: l, path: a.path, identity: identify(a.path)}, nil
}

// reclaim removes the socket of a dead engine. It fails with ErrInUse if the engine is alive, and leaves other files
// alone.
func reclaim(a address) error {
	info, err := os.Lstat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !isSocket(info):
		return errors.New("the path is a file, not a socket")
	}
	pid, err := probe(a)
	switch {
	case err == nil && pid > 0:
		return fmt.Errorf("%w by the engine with pid %d", ErrInUse, pid)
	case err == nil:
		return fmt.Errorf("%w by another engine", ErrInUse)
	case !nobodyListens(err):
		return err
	}
	if err := os.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a dead engine: %w", err)
	}
	return nil
}

// nobodyListens reports whether connecting to a socket failed since its engine has ended.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errAbsent) || refusedOnWindows(err)
}

// probe returns the pid of the engine that listens at an address, 0 if unknown. It fails if none listens.
func probe(a address) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
	defer cancel()
	conn, err := dial(ctx, a)
	if errors.Is(err, syscall.EAGAIN) { // alive, but accepts no connections
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if unix, ok := conn.(*net.UnixConn); ok {
		if pid := host.Listening(unix); pid > 0 {
			return pid, nil
		}
	}
	if f := look(ctx, a, false); f != nil {
		return f.Engine.PID, nil
	}
	return 0, nil // it listened, at least
}

// unixListener removes its socket when it is closed, unless another engine has replaced it.
type unixListener struct {
	*net.UnixListener
	path     string
	identity os.FileInfo
}

func (l *unixListener) Close() error {
	if now := identify(l.path); now != nil && l.identity != nil && os.SameFile(now, l.identity) {
		_ = os.Remove(l.path)
	}
	return l.UnixListener.Close()
}

// identify returns the identity of a file, or nil if it does not exist.
func identify(path string) os.FileInfo {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return info
}
