package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// ErrInUse is the error of an address at which a live engine listens.
var ErrInUse = errors.New("in use")

// ErrToken is the error of a missing or wrong token.
var ErrToken = errors.New("token")

// patience is how long something that answers at once is waited for.
const patience = time.Second

// open listens at an address.
func open(a address, token string) (net.Listener, error) {
	if a.network == "tcp" {
		if !a.loopback() && token == "" {
			return nil, fmt.Errorf("listen at %v: %w: other machines can reach this address, so it needs one", a, ErrToken)
		}
		l, err := net.Listen("tcp", a.path)
		if err != nil {
			return nil, fmt.Errorf("listen at %v: %w", a, err)
		}
		return l, nil
	}
	return openUnix(a)
}

// openUnix makes the socket, and its folder if need be, for this user alone. While it does so it holds the folder, so that of two
// engines that find the socket of a dead one only one takes its place.
func openUnix(a address) (net.Listener, error) {
	dir := filepath.Dir(a.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("listen at %v: hold folder: %w", a, err)
	}
	defer unlock()
	if err := reclaim(a); err != nil {
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	// Nobody can connect before the mode is set: the socket becomes visible under its name only then.
	hidden := filepath.Join(dir, fmt.Sprintf(".%d", os.Getpid()))
	_ = os.Remove(hidden)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen at %v: %w", a, err)
	}
	l.SetUnlinkOnClose(false) // it goes by another name
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

// reclaim removes the socket of a dead engine. Error: ErrInUse if it is alive; what is no socket is not touched.
func reclaim(a address) error {
	info, err := os.Lstat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !isSocket(info):
		return errors.New("there is a file that is no socket")
	}
	pid, err := probe(a)
	switch {
	case err == nil && pid > 0:
		return fmt.Errorf("%w by the engine with pid %d", ErrInUse, pid)
	case err == nil:
		return fmt.Errorf("%w by another engine", ErrInUse)
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) && !refusedOnWindows(err):
		return err
	}
	if err := os.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an engine that is gone: %w", err)
	}
	return nil
}

// probe tells the pid of the engine that listens at an address, 0 if it cannot be found out. It fails if none listens.
func probe(a address) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, a.network, a.path)
	if errors.Is(err, syscall.EAGAIN) { // an engine that is alive but accepts nobody
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if pid := peer(conn); pid > 0 {
		return pid, nil
	}
	engine, err := introduction(conn)
	if err != nil {
		return 0, nil // it listens, at least
	}
	return engine.PID, nil
}

// introduction reads who listens at the other end, if it says so soon and without a token.
func introduction(conn net.Conn) (event.Engine, error) {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	line, err := newLines(conn).next()
	if err != nil {
		return event.Engine{}, err
	}
	var engine event.Engine
	var d wire.Decoder
	_, err = d.Decode(line, func(e event.Event) {
		if p, ok := e.Data.(*event.Engine); ok {
			engine = *p
		}
	})
	return engine, err
}

// unixListener removes its socket when it is closed, unless another engine has put its own in the place.
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

// identify tells a file from others of the same name; nil if there is none.
func identify(path string) os.FileInfo {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return info
}
