//go:build unix

package program_test

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAttach watches a served engine, sends it a prompt, and sees it stop and come back.
func TestAttach(t *testing.T) {
	t.Parallel()
	path := binary(t)
	at := "unix:" + filepath.Join(t.TempDir(), "engine.sock")
	serve := func() *exec.Cmd {
		c := exec.Command(path, "serve", "--listen", at)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	engine := serve()
	p := start(t, 160, 45, "attach", at)
	p.waitFor(t, "connected", "llmtop demo MoE")
	p.keys(t, "p")
	p.waitFor(t, "Prompt")
	p.keys(t, "Call me Ishmael.\r")
	p.waitFor(t, "finished", "1 done")
	if err := engine.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = engine.Wait()
	p.waitFor(t, "DISCONNECTED since", "finished") // the data stays
	engine = serve()
	p.waitFor(t, "RESTARTED")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	_ = engine.Process.Signal(syscall.SIGTERM)
	if err := engine.Wait(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

// TestReplayOnTheScreen records a run and steers its replay.
func TestReplayOnTheScreen(t *testing.T) {
	t.Parallel()
	path := binary(t)
	file := filepath.Join(t.TempDir(), "session.llmtop")
	record := exec.Command(path, "run", "--record", file, "--pace", "200", "-n", "100", "-p", "Call me Ishmael.", "-p", "whale (noun):")
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := start(t, 160, 45, "replay", file, "--paused")
	p.waitFor(t, "REPLAY")
	p.keys(t, " ")
	time.Sleep(300 * time.Millisecond)
	p.keys(t, "\x1b[F") // end
	p.waitFor(t, "2 done", "llmtop demo MoE")
	p.keys(t, "\x1b[H") // start
	time.Sleep(300 * time.Millisecond)
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
