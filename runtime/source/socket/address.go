package socket

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/loopback"
)

// maxPath is the longest socket path that all systems accept, in bytes.
const maxPath = 103

// address is the address of an engine's event socket.
type address struct {
	network string // "unix" or "tcp"
	path    string // path of the socket, or HOST:PORT
}

func (a address) String() string { return a.network + ":" + a.path }

// parse reads "unix:PATH" or "tcp:HOST:PORT".
func parse(text string) (address, error) {
	network, path, _ := strings.Cut(text, ":")
	switch {
	case network == "unix" && path == "":
		return address{}, fmt.Errorf("address %q: no path: write unix:PATH", text)
	case network == "unix" && len(path) > maxPath:
		return address{}, fmt.Errorf("address %q: socket path too long: limit %d bytes, got %d", text, maxPath, len(path))
	case network == "unix":
		return address{network, path}, nil
	case network == "tcp":
		host, port, err := net.SplitHostPort(path)
		if err != nil {
			return address{}, fmt.Errorf("address %q: write tcp:HOST:PORT", text)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return address{}, fmt.Errorf("address %q: %q is not a port", text, port)
		}
		if host == "" {
			host = "127.0.0.1" // not all interfaces
		}
		return address{network, net.JoinHostPort(host, port)}, nil
	}
	return address{}, fmt.Errorf("address %q: write unix:PATH or tcp:HOST:PORT", text)
}

// loopback reports whether only this machine can reach the address.
func (a address) loopback() bool {
	host, _, _ := net.SplitHostPort(a.path)
	return a.network == "unix" || loopback.Host(host)
}

// Folder returns the well-known folder for this user's sockets, which may not exist.
func Folder() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && goruntime.GOOS != "windows" {
		return filepath.Join(dir, "llmtop")
	}
	if goruntime.GOOS == "windows" {
		if dir := os.Getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "llmtop")
		}
	}
	dir := "/tmp" // not TMPDIR, which differs between sessions
	if goruntime.GOOS != "linux" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "llmtop-"+strconv.Itoa(os.Getuid()))
}

// Address returns the well-known address of this process, for an engine of the given name.
func Address(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '_'
	}, name)
	clean = strings.TrimLeft(clean[:min(len(clean), 32)], ".")
	return "unix:" + filepath.Join(Folder(), fmt.Sprintf("%s-%d%s", clean, os.Getpid(), suffix))
}

// suffix is the suffix of socket names in Folder.
const suffix = ".sock"
