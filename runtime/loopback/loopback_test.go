package loopback

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "example.org": false, "localhost.example.org": false, "127.1": false,
		"127.0.0.1.example.org": false,
	} {
		if Host(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func TestGuard(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	allowed := []string{"Host.Docker.Internal", "box:8080"}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:80": true, "LOCALHOST:1": true, "localhost.": true, "127.0.0.1": true, "127.3.2.1:99": true,
		"[::1]": true, "[::1]:80": true, "": true, "host.docker.internal:4318": true, "box": true, "box.": true,
		"evil.example": false, "evil.example:80": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "10.0.0.1": false,
		"0.0.0.0": false, "[::]": false, "localhost evil.example": false, "box.evil.example": false, "evil.example:localhost": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		why := NewGuard(here, allowed).Refusal(r)
		if (why == "") != want {
			t.Errorf("host %q: %q", host, why)
		}
		if why != "" && !strings.Contains(why, "--allow-host NAME") {
			t.Errorf("host %q: %q does not name the flag", host, why)
		}
		if why := NewGuard(&net.TCPAddr{IP: net.IPv4zero}, nil).Refusal(r); why != "" {
			t.Errorf("host %q at a listener for other machines: %q", host, why)
		}
	}
}

// TestRefusalIsOneShortLine: for any host name.
func TestRefusalIsOneShortLine(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "evil\x1b]0;x\a\n" + strings.Repeat("x", 1<<16)
	w := httptest.NewRecorder()
	NewGuard(&net.TCPAddr{IP: net.IPv6loopback}, nil).Handler(http.NotFoundHandler()).ServeHTTP(w, r)
	body := w.Body.String()
	if w.Code != http.StatusForbidden || strings.Count(body, "\n") != 1 || len(body) > 1000 || strings.ContainsAny(body, "\x1b\a") {
		t.Errorf("%d, %q", w.Code, body)
	}
}

func TestCheckHosts(t *testing.T) {
	if err := CheckHosts([]string{"box", "box.local:80", "[fd00::1]", "10.0.0.1"}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "http://box", "box/path", "*", "a b", "a,b", "user@box", "."} {
		if CheckHosts([]string{"box", name}) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
