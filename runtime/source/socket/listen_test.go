package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"unix:/tmp/a.sock": "unix:/tmp/a.sock", "unix:a": "unix:a", "tcp:localhost:80": "tcp:localhost:80", "tcp::0": "tcp:127.0.0.1:0",
		"tcp:[::1]:9": "tcp:[::1]:9",
	} {
		if a, err := parse(text); err != nil || a.String() != want {
			t.Errorf("%s is %v, %v", text, a, err)
		}
	}
	for _, text := range []string{
		"", "unix", "unix:", "tcp:", "tcp:80", "tcp:host", "tcp:host:http", "tcp:host:70000", "http://x", "unix:" + strings.Repeat("x", maxPath+1),
	} {
		if a, err := parse(text); err == nil {
			t.Errorf("%q is %v", text, a)
		}
		if _, err := Listen(text, Options{}); err == nil {
			t.Errorf("listens at %q", text)
		}
	}
}

func TestLoopback(t *testing.T) {
	for text, want := range map[string]bool{
		"unix:a": true, "tcp:localhost:1": true, "tcp:127.0.0.1:1": true, "tcp:127.9.9.9:1": true, "tcp:[::1]:1": true, "tcp::1": true,
		"tcp:0.0.0.0:1": false, "tcp:[::]:1": false, "tcp:10.0.0.1:1": false, "tcp:example.org:1": false,
	} {
		if a, _ := parse(text); a.loopback() != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// TestModes: only this user has access to the socket and to a folder created for it.
func TestModes(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("files have no modes on Windows")
	}
	dir := filepath.Join(t.TempDir(), "new")
	s := server(t, "unix:"+filepath.Join(dir, "s.sock"), Options{})
	for name, want := range map[string]os.FileMode{dir: 0o700, s.address.path: 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("closing leaves %v", entries)
	}
}

// TestSocketOfALiveEngine: the address is refused with the pid of the engine, which keeps working.
func TestSocketOfALiveEngine(t *testing.T) {
	s := server(t, path(t), Options{})
	_, err := Listen(s.Address(), Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("listening again: %v", err)
	}
	var got log
	attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "a connection", func() bool { return got.remote().Link == event.LinkConnected })
}

// TestSocketOfADeadEngine: its socket is replaced.
func TestSocketOfADeadEngine(t *testing.T) {
	at := path(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at[len("unix:"):], Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as a killed process leaves it
	_ = l.Close()
	s := server(t, at, Options{})
	connection(t, s)
	eventtest.Wait(t, "a reader", func() bool { return s.Readers() == 1 })
}

// TestOtherFiles: files that are not sockets are not touched.
func TestOtherFiles(t *testing.T) {
	at := path(t)
	name := at[len("unix:"):]
	if err := os.WriteFile(name, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Listen(at, Options{}); err == nil {
		t.Errorf("listens in place of a file: %v", s.Close())
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "precious" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// TestClosingLeavesTheSocketOfASuccessor: Close removes only its own socket.
func TestClosingLeavesTheSocketOfASuccessor(t *testing.T) {
	at := path(t)
	first := server(t, at, Options{})
	if err := os.Remove(first.address.path); err != nil {
		t.Fatal(err)
	}
	second := server(t, at, Options{})
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	connection(t, second)
}

// TestTokens: a client without the token receives nothing.
func TestTokens(t *testing.T) {
	s := server(t, "tcp:127.0.0.1:0", Options{Token: "secret"})
	for token, want := range map[string]event.Link{"secret": event.LinkConnected, "wrong": event.LinkRefused, "": event.LinkRefused} {
		var got log
		attach(t, s.Address(), token, &got)
		eventtest.Wait(t, "an answer", func() bool { return got.remote().Link != event.LinkNone })
		if r := got.remote(); r.Link != want {
			t.Errorf("with token %q the connection is %+v", token, r)
		} else if want == event.LinkRefused && !(strings.Contains(r.Reason, "--token-file") && strings.Contains(r.Reason, "$LLMTOP_TOKEN")) {
			t.Errorf("with token %q the reason %q does not say how to set one", token, r.Reason)
		}
		if e := got.OfKind(event.KindEngine)[0].Data.(*event.EngineInfo); want == event.LinkRefused && e.Name != "" {
			t.Errorf("with token %q the engine introduces itself as %q", token, e.Name)
		}
	}
	conn := connection(t, s)
	if _, err := conn.Write([]byte(strings.Repeat("x", 1<<20))); err == nil { // neither a line nor an end
		drainAll(conn)
	}
	if n := s.Readers(); n != 1 {
		t.Errorf("%d readers, want the one that knows the token", n)
	}
}

func TestOtherMachinesNeedAToken(t *testing.T) {
	if s, err := Listen("tcp:0.0.0.0:0", Options{}); !errors.Is(err, ErrToken) {
		t.Errorf("listens to all: %v", err)
		_ = s.Close()
	}
	server(t, "tcp:0.0.0.0:0", Options{Token: "secret"})
	if s, err := Listen("tcp:127.0.0.1:0", Options{Token: strings.Repeat("x", 4096)}); !errors.Is(err, ErrToken) {
		t.Errorf("takes a token that no reader can send: %v", err)
		_ = s.Close()
	}
}

func TestLook(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Setenv("LOCALAPPDATA", t.TempDir())
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if found, err := Look(t.Context(), false); err != nil || len(found) > 0 {
		t.Errorf("without a folder: %v, %v", found, err)
	}
	s := server(t, Address("my engine/2"), Options{Engine: event.EngineInfo{Name: "my engine/2", PID: 77}})
	dead := filepath.Join(Folder(), "dead-1.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if err := os.WriteFile(filepath.Join(Folder(), "file.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	secret := server(t, "unix:"+filepath.Join(Folder(), "secret-1.sock"), Options{Token: "x"})
	found, err := Look(t.Context(), false)
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	if found[0].Address != s.Address() || found[0].Engine.Name != "my engine/2" || found[0].Engine.PID != 77 {
		t.Errorf("found %+v", found[0])
	}
	if found[1].Address != secret.Address() || found[1].Engine.Name != "" {
		t.Errorf("found %+v", found[1])
	}
}
