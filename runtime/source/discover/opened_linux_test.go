package discover

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shared reports whether a file is one that the tests look for.
func shared(path string) bool { return strings.HasPrefix(filepath.Base(path), "loads_") }

func TestOpened(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:30000")
	any4, other := netip.MustParseAddrPort("0.0.0.0:30000"), netip.MustParseAddrPort("127.0.0.1:30001")
	for _, c := range []struct {
		name string
		set  func(tr *tree, a, b string)
		want string // "a": that file
	}{
		{"in the process itself", func(tr *tree, a, _ string) {
			tr.process(10, 1, "server", at)
			tr.link("10/fd/9", a)
		}, "a"},
		{"in a process that it has started", func(tr *tree, a, b string) {
			tr.process(10, 1, "server", any4)
			tr.process(11, 10, "launcher")
			tr.process(12, 11, "scheduler")
			tr.link("12/fd/7", a)
			tr.process(20, 1, "another server", other)
			tr.link("20/fd/9", b)
		}, "a"},
		{"twice the same", func(tr *tree, a, _ string) {
			tr.process(10, 1, "server", at)
			tr.link("10/fd/9", a)
			tr.process(11, 10, "scheduler")
			tr.link("11/fd/7", a)
		}, "a"},
		{"two", func(tr *tree, a, b string) {
			tr.process(10, 1, "server", at)
			tr.link("10/fd/8", a)
			tr.link("10/fd/9", b)
		}, "several such files open"},
		{"another's", func(tr *tree, a, _ string) {
			tr.process(10, 1, "server", at)
			tr.process(20, 1, "another server", other)
			tr.link("20/fd/9", a)
		}, "has no such file open"},
		{"nobody listens", func(tr *tree, a, _ string) {
			tr.process(20, 1, "another server", other)
			tr.link("20/fd/9", a)
		}, "cannot find the server's process"},
		{"of who listens at all other addresses", func(tr *tree, a, _ string) {
			tr.process(10, 1, "server", at)
			tr.process(20, 1, "another server", any4)
			tr.link("20/fd/9", a)
		}, "has no such file open"},
		{"of its parent", func(tr *tree, a, _ string) {
			tr.process(5, 1, "who starts servers")
			tr.link("5/fd/9", a)
			tr.process(10, 5, "server", at)
		}, "has no such file open"},
	} {
		folder := t.TempDir()
		a, b := filepath.Join(folder, "loads_a"), filepath.Join(folder, "loads_b")
		for _, path := range []string{a, b} {
			if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tr := newTree(t)
		c.set(tr, a, b)
		got, err := opened(tr.root, at, shared)
		if text, _ := os.ReadFile(got); err == nil && string(text) != a || (c.want == "a") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %s", c.name, got, err, c.want)
		}
	}
}

// TestOpenedForReal looks for an open file of a real process.
func TestOpenedForReal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loads_real")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("sleep", "300") // inherits both files
	server.ExtraFiles = []*os.File{socket, file}
	if err := server.Start(); err != nil {
		t.Skipf("sleep cannot be started: %v", err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	at := netip.MustParseAddrPort(l.Addr().String())
	got, err := Opened(at, shared)
	if want := fmt.Sprintf("/proc/%d/fd/4", server.Process.Pid); got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := Opened(netip.AddrPortFrom(at.Addr(), 1), shared); err == nil {
		t.Error("found a file for a port without a listener")
	}
}
