//go:build unix

package program_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/report"
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

// TestAttachByName waits for an engine by its name, and follows it to its next process, which has another socket. So does a
// session that found its first process by itself; a second engine of the name stays apart.
func TestAttachByName(t *testing.T) {
	t.Parallel()
	path, folder := binary(t), t.TempDir()
	in := func(args ...string) *exec.Cmd {
		c := exec.Command(path, args...)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder)
		return c
	}
	serve := func() *exec.Cmd {
		c := in("serve")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	kill := func(c *exec.Cmd) {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	named, found := startCommand(t, 120, 36, in("attach", "native")), startCommand(t, 120, 36, in("attach"))
	named.waitFor(t, "WAITING for native", "shown as soon as it starts")
	first := serve()
	named.waitFor(t, "connected", "llmtop demo MoE")
	found.waitFor(t, "connected", "llmtop demo MoE")
	kill(first)
	named.waitFor(t, "DISCONNECTED since", "a new process of native takes its place")
	found.waitFor(t, "DISCONNECTED since")
	second := serve()
	named.waitFor(t, "RESTARTED (1)")
	found.waitFor(t, "RESTARTED (1)", "connected")
	serve() // another engine of the name
	found.keys(t, "l")
	found.waitFor(t, "2 engines")
	kill(second)
	named.waitFor(t, "RESTARTED (2)") // the only name that it watches
	for _, p := range []*program{named, found} {
		p.keys(t, "q")
		if code := p.exit(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// TestAttachTheOnlyEngine: without a screen and an address, the only engine is watched; none and several are refused. The
// report says what llmtop knows of the session: its command, its settings, and the machine, which is that of the process
// at the other end.
func TestAttachTheOnlyEngine(t *testing.T) {
	t.Parallel()
	path, folder := binary(t), t.TempDir()
	in := func(args ...string) *exec.Cmd {
		c := exec.Command(path, args...)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder, "LLMTOP_DISCOVER=sockets")
		return c
	}
	sockets := filepath.Join(folder, "llmtop")
	if err := errors.Join(os.Mkdir(sockets, 0o700), os.Chmod(sockets, 0o777)); err != nil {
		t.Fatal(err)
	}
	if out, err := in("attach", "--headless", "--for", "10ms").CombinedOutput(); err == nil || !strings.Contains(string(out), "other users may write to it") {
		t.Errorf("with an untrusted folder: %v\n%s", err, out)
	}
	if err := os.Chmod(sockets, 0o700); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"no engine found on this machine", "the only engine found: native", "2 engines found, name one: native at unix:"} {
		if n > 0 {
			engine := in("serve")
			out, err := engine.StderrPipe()
			if err == nil {
				err = engine.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = engine.Process.Kill(); _ = engine.Wait() })
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
				t.Fatalf("serve: %q, %v", line, err)
			}
		}
		file := filepath.Join(folder, "report.json")
		c := in("attach", "--headless", "--for", "2s", "--json", file)
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); !strings.Contains(string(out), want) || code != map[bool]int{true: 0, false: 2}[n == 1] {
			t.Errorf("%d engines: exit code %d\n%s", n, code, out)
		}
		if n != 1 {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, here := decodeReport(t, text), report.ThisMachine()
		if r.Machine.OS == nil || *r.Machine.OS != *here.OS || r.Machine.Cores == nil || *r.Machine.Cores != *here.Cores {
			t.Errorf("the machine is %+v", r.Machine)
		}
		if c := r.Configuration; r.Command != "attach --headless --for 2s" || c["fps"] != "10" || c["slo"] != "" || !strings.HasPrefix(c["attach"], "unix:") {
			t.Errorf("command %q, settings %v", r.Command, c)
		}
		if _, set := r.Configuration["temp"]; set {
			t.Error("a sampler that is the engine's own is among the settings")
		}
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
