package cmd

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// addressOf is the address that a user means who may have left out what goes without saying: HOST:PORT and PORT are servers over HTTP, as
// event sockets are written with tcp: or unix: in front, and pid:PROCESS is wherever that process can be watched.
func addressOf(ctx context.Context, text string) (string, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case strings.HasPrefix(text, "unix:"), strings.HasPrefix(text, "tcp:"), isFleet(text):
		return text, nil
	case isURL && (scheme == "http" || scheme == "https"):
		return baseOf(text), nil
	}
	if number, ok := strings.CutPrefix(text, "pid:"); ok {
		return addressOfProcess(ctx, number)
	}
	if at := serverAt(text); at != "" {
		return at, nil
	}
	return "", usagef("attach %s: write http://HOST:PORT for a server, unix:PATH or tcp:HOST:PORT for an event socket, or pid:PROCESS", fetch.Strip(text))
}

// pasted are the ends of the addresses that clients and scrapers are given, the longest first.
var pasted = []string{"/v1/chat/completions", "/v1/completions", "/chat/completions", "/v1/models", "/metrics"}

// baseOf is a server's address without what people paste behind it.
func baseOf(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if i := strings.IndexByte(rest, '/'); ok && i >= 0 {
		path := strings.TrimRight(rest[i:], "/")
		for _, end := range pasted {
			if base, cut := strings.CutSuffix(path, end); cut {
				return scheme + "://" + rest[:i] + base
			}
		}
	}
	return address
}

// serverAt is the address of the server that is written as PORT, :PORT or HOST:PORT; "" for all else.
func serverAt(text string) string {
	if port := strings.TrimPrefix(text, ":"); isPort(port) {
		return "http://127.0.0.1:" + port
	}
	before, _, _ := strings.Cut(text, "/")
	if host, port, err := net.SplitHostPort(before); err == nil && host != "" && isPort(port) {
		return baseOf("http://" + text)
	}
	return ""
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// addressOfProcess is where an engine of this machine can be watched.
func addressOfProcess(ctx context.Context, number string) (string, error) {
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 {
		return "", usagef("attach pid:%s: the number of a process comes after pid:", number)
	}
	for _, f := range discover.Find(ctx, discover.Options{}).Engines {
		if f.PID == pid && f.Address != "" {
			return f.Address, nil
		}
		if i := slices.IndexFunc(f.Runners, func(r discover.Runner) bool { return r.PID == pid && r.Address != "" }); i >= 0 {
			return f.Runners[i].Address, nil
		}
	}
	return "", usagef("attach pid:%d: no engine that can be watched is known in this process: llmtop discover lists those that are", pid)
}
