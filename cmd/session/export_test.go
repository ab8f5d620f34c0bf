package session

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestEngineNames checks that a remote engine is named by its address, without a password.
func TestEngineNames(t *testing.T) {
	for of, want := range map[string]string{
		"": "local", "tcp:127.0.0.1:7070": "tcp:127.0.0.1:7070", "unix:/run/a b.sock": "unix:/run/a b.sock",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "https://me:secret@x.example/v1": "https://x.example/v1",
	} {
		if got := ExportName(of); got != want {
			t.Errorf("name of %q is %q, want %q", of, got, want)
		}
	}
}

// TestLoopbackAddress checks that without a host an endpoint is reachable only from this machine.
func TestLoopbackAddress(t *testing.T) {
	for listen, want := range map[string]bool{
		":9464": true, "127.0.0.1:1": true, "127.8.8.8:1": true, "localhost:1": true, "[::1]:1": true,
		"0.0.0.0:1": false, "[::]:1": false, "192.168.0.1:1": false, "example.org:1": false,
	} {
		e := Outputs{listen: listen}
		if e.loopback() != want {
			t.Errorf("%s, which is %s: loopback is %v", listen, e.address(), !want)
		}
	}
}

// TestMetricsHosts checks that a loopback address serves requests for loopback names, and for those of --allow-host.
func TestMetricsHosts(t *testing.T) {
	e := Outputs{listen: "127.0.0.1:0", Allow: []string{"box.example"}}
	x, err := e.openExport(true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}()
	for host, want := range map[string]int{"localhost:1": 200, "[::1]": 200, "box.example:9464": 200, "evil.example": 403} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		x.server.Handler.ServeHTTP(w, r)
		if w.Code != want || (want == 403) != strings.Contains(w.Body.String(), "--allow-host") {
			t.Errorf("%s: %d %q", host, w.Code, w.Body)
		}
	}
	for _, name := range []string{"http://box", "*", ""} {
		if err := (&Outputs{Allow: []string{name}}).Check(); !exit.IsUsage(err) {
			t.Errorf("--allow-host %q: %v", name, err)
		}
	}
}
