//go:build unix

package program_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// refusing is an engine that can be watched at first and refuses later: with an introduction in a newer version of the
// protocol, or by requiring a token.
func refusing(t *testing.T, later string) (at string, refuse func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	now := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if !first {
				fmt.Fprintln(c, later)
				continue
			}
			fmt.Fprintln(c, `{"t":"hello","v":"1.0","name":"fickle","a":1,"caps":["tokens"]}`)
			fmt.Fprintln(c, `{"t":"req","a":2,"r":1,"state":"queued"}`)
			fmt.Fprintln(c, `{"t":"tok","a":3000000,"r":1,"text":"hi"}`)
			<-now
			if strings.Contains(later, "hello") {
				fmt.Fprintln(c, later)
			} else {
				_ = c.Close()
			}
		}
	}()
	return "unix:" + path, func() { close(now) }
}

// lateRefusals are the messages of an engine that refuses.
var lateRefusals = []string{`{"t":"hello","v":"2.0","name":"fickle","a":1}`, `{"t":"auth","v":"1.0"}`}

// TestLateRefusal checks that the data of the only engine stays on the screen, or in the report, after it refuses.
func TestLateRefusal(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for _, later := range lateRefusals {
		at, refuse := refusing(t, later)
		p := start(t, 160, 45, "attach", at)
		p.waitFor(t, "connected", "#1")
		refuse()
		p.waitFor(t, "REFUSED", "#1")
		p.keys(t, "q")
		if code := p.exit(t); code != 0 {
			t.Errorf("%s: exit code %d", later, code)
		}

		at, refuse = refusing(t, later)
		name := filepath.Join(t.TempDir(), "report.json")
		c := exec.Command(path, "attach", "--headless", "--json", name, at)
		refuse()
		stderr, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(stderr), "\nllmtop: attach "+at) {
			t.Errorf("%s: %v\n%s", later, err, stderr)
		}
		var report struct{ Requests []struct{ ID int } }
		raw, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(raw, &report)
		}
		if err != nil || len(report.Requests) != 1 {
			t.Errorf("%s: the report has %d requests, %v", later, len(report.Requests), err)
		}
	}
}

// TestFirstRefusal checks that an engine that was never watched ends the program.
func TestFirstRefusal(t *testing.T) {
	t.Parallel()
	for _, first := range lateRefusals {
		path := filepath.Join(t.TempDir(), "engine.sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				defer c.Close()
				fmt.Fprintln(c, first)
				_, _ = c.Read(make([]byte, 1))
			}
		}()
		p := start(t, 160, 45, "attach", "unix:"+path)
		if code := p.exit(t); code != 2 {
			t.Errorf("%s: exit code %d", first, code)
		}
		_ = l.Close()
	}
}
