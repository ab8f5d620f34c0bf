//go:build unix

package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"
)

// serveBuiltIn serves the built-in model until the test ends, and returns its address.
func serveBuiltIn(t *testing.T) string {
	t.Helper()
	path := binary(t)
	at := "unix:" + filepath.Join(t.TempDir(), "engine.sock")
	c := exec.Command(path, "serve", "--listen", at)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	return at
}

// generated returns the tokens of the finished requests of a recording.
func generated(t *testing.T, file string) (out [][]int32) {
	t.Helper()
	path := binary(t)
	name := filepath.Join(t.TempDir(), "report.json")
	if text, err := exec.Command(path, "replay", file, "--headless", "--json", name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Requests []struct{ Tokens []struct{ ID int32 } }
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Requests {
		var ids []int32
		for _, token := range r.Tokens {
			ids = append(ids, token.ID)
		}
		out = append(out, ids)
	}
	return out
}

// TestTwoRecorders checks that a file refuses a second recorder in one line, and that two recordings of a run are
// equal.
func TestTwoRecorders(t *testing.T) {
	t.Parallel()
	at, dir := serveBuiltIn(t), t.TempDir()
	one, two := filepath.Join(dir, "one.llmtop"), filepath.Join(dir, "two.llmtop")
	first := start(t, 160, 45, "attach", at, "--record", one)
	first.waitFor(t, "connected", "REC")
	refused := start(t, 300, 45, "attach", at, "--record", one)
	refused.waitFor(t, "another recorder is writing to it")
	if code := refused.exit(t); code != 2 {
		t.Errorf("the second recorder ends with exit code %d", code)
	}
	second := start(t, 160, 45, "attach", at, "--record", two)
	second.waitFor(t, "connected", "REC")
	first.keys(t, "p")
	first.waitFor(t, "Prompt")
	first.keys(t, "Call me Ishmael.\r")
	for _, p := range []*program{first, second} {
		p.waitFor(t, "finished", "1 done")
		p.keys(t, "q")
		if code := p.exit(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	a, b := generated(t, one), generated(t, two)
	if len(a) != 1 || len(a[0]) == 0 || !reflect.DeepEqual(a, b) {
		t.Errorf("one recorder has %v, the other %v", a, b)
	}
}

// TestAttachFindsEngines checks that attach finds the event sockets of the user, later ones included, and ignores those
// of dead engines.
func TestAttachFindsEngines(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir := t.TempDir()
	serve := func() *exec.Cmd {
		c := exec.Command(path, "serve")
		c.Env = append(c.Environ(), "XDG_RUNTIME_DIR="+dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		return c
	}
	sockets := func(n int) {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if found, _ := filepath.Glob(filepath.Join(dir, "llmtop", "*.sock")); len(found) == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("there never were %d sockets", n)
			}
		}
	}
	dead := serve()
	sockets(1)
	_ = dead.Process.Kill()
	_ = dead.Wait()
	serve()
	sockets(2)
	attach := exec.Command(path, "attach")
	attach.Env = append(attach.Environ(), "XDG_RUNTIME_DIR="+dir)
	p := startCommand(t, 160, 45, attach)
	p.waitFor(t, "connected", "llmtop demo MoE")
	serve()
	p.waitFor(t, "1/2 unix:") // the first of two
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
