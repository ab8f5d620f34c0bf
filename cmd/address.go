package cmd

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// parseAddress returns the address for what a user typed, which may be short: HOST:PORT and PORT are HTTP servers
// (event sockets begin with tcp: or unix:), and pid:PROCESS is the address of that process.
func parseAddress(ctx context.Context, text string) (string, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case strings.HasPrefix(text, "unix:"), strings.HasPrefix(text, "tcp:"), isFleet(text):
		return text, nil
	case isURL && (scheme == "http" || scheme == "https"):
		return trimAPIPath(text), nil
	}
	if number, ok := strings.CutPrefix(text, "pid:"); ok {
		return processAddress(ctx, number)
	}
	if at := serverAddress(text); at != "" {
		return at, nil
	}
	return "", usagef("attach %s: write http://HOST:PORT for a server, unix:PATH or tcp:HOST:PORT for an event socket, or pid:PROCESS", fetch.Strip(text))
}

// apiPaths are the path endings that clients and scrapers use, longest first.
var apiPaths = []string{"/v1/chat/completions", "/v1/completions", "/chat/completions", "/v1/models", "/metrics"}

// trimAPIPath returns the address of a server without an API path that was pasted with it.
func trimAPIPath(address string) string {
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

// serverAddress returns the URL of a server written as PORT, :PORT or HOST:PORT, "" for anything else.
func serverAddress(text string) string {
	if port := strings.TrimPrefix(text, ":"); isPort(port) {
		return "http://127.0.0.1:" + port
	}
	before, _, _ := strings.Cut(text, "/")
	if host, port, err := net.SplitHostPort(before); err == nil && host != "" && isPort(port) {
		return trimAPIPath("http://" + text)
	}
	return ""
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// processAddress returns the address at which the engine in a process of this machine can be watched.
func processAddress(ctx context.Context, number string) (string, error) {
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 {
		return "", usagef("attach pid:%s: write the number of a process after pid:", number)
	}
	for _, f := range discover.Find(ctx, discover.Options{}).Engines {
		if f.PID == pid && f.Address != "" {
			return f.Address, nil
		}
		if i := slices.IndexFunc(f.Runners, func(r discover.Runner) bool { return r.PID == pid && r.Address != "" }); i >= 0 {
			return f.Runners[i].Address, nil
		}
	}
	return "", usagef("attach pid:%d: no engine found in this process: list the engines with llmtop discover", pid)
}
