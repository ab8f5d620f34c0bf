// Package address reads the addresses of engines that users type.
package address

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Parse returns the address for what a user typed, which may be short: HOST:PORT and PORT are HTTP servers
// (event sockets begin with tcp: or unix:), and pid:PROCESS is the address of that process. A name is that of an engine
// with an event socket, which may start later.
func Parse(ctx context.Context, text string) (string, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case strings.HasPrefix(text, "unix:"), strings.HasPrefix(text, "tcp:"), IsFleet(text):
		return text, nil
	case isURL && (scheme == "http" || scheme == "https"):
		return TrimAPIPath(text), nil
	}
	if number, ok := strings.CutPrefix(text, "pid:"); ok {
		return processAddress(ctx, number)
	}
	if at := Server(text); at != "" {
		return at, nil
	}
	if socket.IsName(text) {
		return text, nil
	}
	return "", exit.Usagef("attach %s: write http://HOST:PORT for a server, unix:PATH or tcp:HOST:PORT for an event socket, or pid:PROCESS", clean.URL(text))
}

// apiPaths are the path endings that clients and scrapers use, longest first.
var apiPaths = []string{"/v1/chat/completions", "/v1/completions", "/chat/completions", "/v1/models", "/metrics"}

// TrimAPIPath returns the address of a server without an API path that was pasted with it.
func TrimAPIPath(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if i := strings.IndexByte(rest, '/'); ok && i >= 0 {
		path := strings.TrimRight(rest[i:], "/")
		for _, end := range apiPaths {
			if base, cut := strings.CutSuffix(path, end); cut {
				return scheme + "://" + rest[:i] + base
			}
		}
	}
	return address
}

// Server returns the URL of a server written as PORT, :PORT or HOST:PORT, "" for anything else.
func Server(text string) string {
	if port := strings.TrimPrefix(text, ":"); isPort(port) {
		return "http://127.0.0.1:" + port
	}
	before, _, _ := strings.Cut(text, "/")
	if host, port, err := net.SplitHostPort(before); err == nil && host != "" && isPort(port) {
		return TrimAPIPath("http://" + text)
	}
	return ""
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Named returns the address of the engine that discovery lists with a name: its model, kind or program. An address, the
// name of an event socket, which is followed by it, and a name that nothing has, it returns as they are. It fails if
// several engines have the name.
func Named(ctx context.Context, text string) (string, error) {
	if IsEngine(text) {
		return text, nil
	}
	var at []string
	followed := false
	for _, f := range discover.Find(ctx, discover.Options{}).Engines {
		same := func(name string) bool { return strings.EqualFold(name, text) }
		if f.Address != "" && slices.ContainsFunc([]string{f.Model, string(f.Kind), f.Program}, same) {
			at, followed = append(at, f.Best()), f.How == discover.BySocket && same(string(f.Kind)) && socket.IsName(text)
		}
	}
	switch {
	case len(at) == 0, len(at) == 1 && followed:
		return text, nil
	case len(at) == 1:
		return at[0], nil
	}
	return "", exit.Usagef("attach %s: %d engines have this name: name one by its address: %s", text, len(at), strings.Join(at, ", "))
}

// DiscoverVariable is the environment variable that says where to look for engines that were not named.
const DiscoverVariable = "LLMTOP_DISCOVER"

// Values of --discover and of the variable.
const (
	DiscoverAll     = "all"
	DiscoverSockets = "sockets" // event sockets only: no processes, no ports
	DiscoverOff     = "off"
)

// CheckDiscover refuses an unknown value of the flag or variable of this name.
func CheckDiscover(name, mode string) error {
	if !slices.Contains([]string{DiscoverAll, DiscoverSockets, DiscoverOff}, mode) {
		return exit.Usagef("%s %q: must be %s, %s or %s", name, mode, DiscoverAll, DiscoverSockets, DiscoverOff)
	}
	return nil
}

// Only returns the address of the only engine found on this machine, and its name. It fails if there are several, or none.
// Probes are not attached to a process that was not named.
func Only(ctx context.Context) (at, name string, err error) {
	mode := cmp.Or(os.Getenv(DiscoverVariable), DiscoverAll)
	if err := CheckDiscover("$"+DiscoverVariable, mode); err != nil {
		return "", "", err
	}
	if mode == DiscoverOff {
		return "", "", exit.Usagef("attach: without a terminal it needs an address, because $%s is off", DiscoverVariable)
	}
	var found, commands []string
	all := discover.Find(ctx, discover.Options{NoServers: mode == DiscoverSockets})
	for _, f := range all.Engines {
		if f.Known() && f.Address != "" && f.State != discover.Silent {
			at, name = f.Address, clean.Line(string(f.Kind))
			found, commands = append(found, name+" at "+at), append(commands, "llmtop attach "+at)
		}
	}
	switch {
	case len(found) == 0 && len(all.Notes) > 0:
		return "", "", exit.Usagef("attach: no engine found on this machine: %s", clean.Line(strings.Join(all.Notes, "; ")))
	case len(found) == 0:
		return "", "", exit.Usagef("attach: no engine found on this machine: start one, or wait for an event socket by its name: llmtop attach NAME")
	case len(found) > 1:
		return "", "", exit.Usagef("attach: %d engines found, name one: %s", len(found), clean.Line(strings.Join(found, ", ")))
	case strings.HasPrefix(at, "pid:"):
		return "", "", exit.Usagef("attach: only probes can watch the only engine found, %s: run %s", name, commands[0])
	}
	return at, name, nil
}

// processAddress returns the address at which the engine in a process of this machine can be watched.
func processAddress(ctx context.Context, number string) (string, error) {
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 {
		return "", exit.Usagef("attach pid:%s: write the number of a process after pid:", number)
	}
	for _, f := range discover.Find(ctx, discover.Options{}).Engines {
		if f.PID == pid && f.Address != "" && f.Address != f.Probes.Address {
			return f.Address, nil
		}
		if i := slices.IndexFunc(f.Runners, func(r discover.Runner) bool { return r.PID == pid && r.Address != "" }); i >= 0 {
			return f.Runners[i].Address, nil
		}
	}
	also := ""
	if port := listensAt(pid); port != 0 {
		also = fmt.Sprintf(", or see the HTTP requests at its port with sudo llmtop tap %d", port)
	}
	return "", exit.Usagef("attach pid:%d: no engine found in this process: list the engines with llmtop discover%s", pid, also)
}

// listensAt returns the lowest port at which a process of this machine listens; 0: none, or it cannot be read.
func listensAt(pid int) (port uint16) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	all, _ := host.Listeners(filepath.Join(dir, "net"))
	_ = host.SocketsOf(dir, func(inode uint64) {
		for _, l := range all {
			if l.Inode == inode && (port == 0 || l.At.Port() < port) {
				port = l.At.Port()
			}
		}
	})
	return port
}

// FleetScheme is the prefix of the address of a Prometheus whose targets are watched.
const FleetScheme = "prometheus+"

// IsFleet reports whether an argument is such an address.
func IsFleet(at string) bool {
	return strings.HasPrefix(at, FleetScheme+"http://") || strings.HasPrefix(at, FleetScheme+"https://")
}

// IsEngine reports whether an argument is the address of an engine. For PORT, HOST:PORT and pid:PROCESS, an
// existing file of that name has precedence.
func IsEngine(arg string) bool {
	if Server(arg) != "" || strings.HasPrefix(arg, "pid:") {
		_, err := os.Stat(arg)
		return err != nil
	}
	return slices.ContainsFunc([]string{"unix:", "tcp:", "http:", "https:", FleetScheme + "http"}, func(p string) bool { return strings.HasPrefix(arg, p) })
}

// IsRemote reports whether an argument is the address of an engine, not a model file.
func IsRemote(arg string) bool {
	return remote.IsAddress(arg) || strings.HasPrefix(arg, "unix:") || strings.HasPrefix(arg, "tcp:")
}

// Unencrypted reports whether traffic to a server can be read in transit: another machine, without HTTPS.
func Unencrypted(at string) bool {
	u, err := url.Parse(strings.TrimPrefix(at, FleetScheme))
	return err == nil && u.Scheme == "http" && !remote.IsLocal(u.String())
}

// IsLocal reports whether an address of any kind but pid: is on this machine.
func IsLocal(at string) bool {
	at = strings.TrimPrefix(at, FleetScheme)
	return strings.HasPrefix(at, "unix:") || remote.IsLocal(strings.Replace(at, "tcp:", "tcp://", 1))
}
