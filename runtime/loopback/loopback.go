// Package loopback decides which addresses only this machine can reach, and which host names requests to them may use.
package loopback

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Host reports whether only this machine can reach a host, given without a port. Of names it accepts only localhost:
// others may resolve to anything.
func Host(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Flag is the flag that adds allowed host names to a Guard.
const Flag = "allow-host"

// CheckHosts returns an error if a name is not a host name.
func CheckHosts(names []string) error {
	for _, name := range names {
		if hostOf(name) == "" || strings.ContainsAny(name, "/@*, \t") {
			return fmt.Errorf("--%s %q: use a host name such as host.docker.internal", Flag, name)
		}
	}
	return nil
}

// hostOf returns the host of HOST or HOST:PORT in normal form: lower case, without brackets and without a trailing dot.
func hostOf(at string) string {
	if host, _, err := net.SplitHostPort(at); err == nil {
		at = host
	}
	at = strings.TrimSuffix(strings.TrimPrefix(at, "["), "]")
	return strings.ToLower(strings.TrimSuffix(at, "."))
}

// Guard protects a local listener from web pages. A browser on this machine can reach it, and a page whose own host
// name resolves to 127.0.0.1 could read its answers (DNS rebinding). Such requests have that name as their Host.
type Guard struct {
	open  bool     // other machines can reach the listener anyway
	names []string // allowed besides loopback names, as hostOf returns them
}

// NewGuard returns a guard for a listener's address. allowed are host names that it accepts besides loopback names.
func NewGuard(at net.Addr, allowed []string) *Guard {
	tcp, ok := at.(*net.TCPAddr)
	g := &Guard{open: !ok || !tcp.IP.IsLoopback()}
	for _, name := range allowed {
		g.names = append(g.names, hostOf(name))
	}
	return g
}

// Refusal returns the reason to refuse a request in one line, or "". It accepts HTTP/1.0 requests without a Host:
// browsers always send one.
func (g *Guard) Refusal(r *http.Request) string {
	host := hostOf(r.Host)
	if g.open || r.Host == "" || Host(host) || slices.Contains(g.names, host) {
		return ""
	}
	return fmt.Sprintf("llmtop does not answer to the host name %s: use a loopback address, or start llmtop with --%s NAME", clean.Quote(host), Flag)
}

// Handler answers refused requests with 403 and passes others to next.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := g.Refusal(r)
		if why == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintln(w, why) // the client may have disconnected
	})
}
