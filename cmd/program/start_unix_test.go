//go:build unix

package program_test

import (
	"os/exec"
	"syscall"
	"testing"
)

// served starts an engine with a folder of event sockets, there or at an address, and returns when it listens.
func served(t *testing.T, folder, address string) {
	t.Helper()
	args := []string{"serve"}
	if address != "" {
		args = append(args, "--listen", address)
	}
	c := exec.Command(binary(t), args...)
	c.Env = append(c.Environ(), "XDG_RUNTIME_DIR="+folder)
	notes, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGKILL)
		_ = c.Wait()
	})
	if _, err := notes.Read(make([]byte, 1)); err != nil { // it prints where it listens
		t.Fatal(err)
	}
}

// bare starts llmtop without arguments, with --discover sockets and a folder of event sockets.
func bare(t *testing.T, folder string) *program {
	t.Helper()
	c := exec.Command(binary(t))
	c.Env = append(c.Environ(), "LLMTOP_DISCOVER=sockets", "XDG_RUNTIME_DIR="+folder)
	return startCommand(t, 160, 45, c)
}

// TestStartWithoutEngines checks that the built-in model runs, and that the screen shows why.
func TestStartWithoutEngines(t *testing.T) {
	t.Parallel()
	p := bare(t, t.TempDir())
	p.waitFor(t, "no engine found on this machine")
	p.waitFor(t, "llmtop demo MoE", "paced 40", "q quit")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestStartWithOneEngine checks that the engine is watched, and that the screen shows how to run the built-in model.
func TestStartWithOneEngine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	served(t, folder, "")
	p := bare(t, folder)
	p.waitFor(t, "the only engine found", "--discover off")
	p.waitFor(t, "connected", "llmtop demo MoE")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestStartWithSeveralEngines checks that one of them, all of them or the built-in model can be chosen.
func TestStartWithSeveralEngines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	served(t, dir, "")
	served(t, dir, "unix:"+dir+"/llmtop/second.sock")
	for _, tt := range []struct{ keys, want string }{
		{"\r", "connected"}, {"a", "sum"}, {"\x1b", "paced 40"}, {"q", ""},
	} {
		p := bare(t, dir)
		p.waitFor(t, "2 engines on this machine", "second.sock", "built-in model")
		p.keys(t, tt.keys)
		if tt.want != "" {
			p.waitFor(t, tt.want, "q quit")
			p.keys(t, "q")
		}
		if code := p.exit(t); code != 0 {
			t.Errorf("%q: exit code %d", tt.keys, code)
		}
	}
}

// TestKeysBeforeTheFirstFrame checks that a key that is typed while the program starts is not lost.
func TestKeysBeforeTheFirstFrame(t *testing.T) {
	t.Parallel()
	p := start(t, 160, 45, "attach", serveBuiltIn(t))
	p.keys(t, "?")
	p.waitFor(t, "suspend") // in the help
	p.keys(t, "?q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
