//go:build unix

package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// engineOf returns the process ID of the engine of a program.
func engineOf(t *testing.T, parent int) int {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[1] == strconv.Itoa(parent) && f[len(f)-1] == "engine-child" {
				pid, err := strconv.Atoi(f[0])
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatal("the engine has no process of its own")
	return 0
}

// send sends a signal to a process.
func send(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestEngineKilledOnTheScreen stops, continues and kills the process of the engine. The data stays until the user
// quits.
func TestEngineKilledOnTheScreen(t *testing.T) {
	t.Parallel()
	p := start(t, 160, 45, "run", "--isolated", "--pace", "20", "-n", "1000", "-p", "Call me Ishmael.")
	p.waitFor(t, "live", "llmtop demo MoE", "running")
	engine := engineOf(t, p.cmd.Process.Pid)
	send(t, engine, syscall.SIGSTOP)
	p.waitFor(t, "STALE since")
	send(t, engine, syscall.SIGCONT)
	p.waitFor(t, "live")
	send(t, engine, syscall.SIGKILL)
	p.waitFor(t, "failed", "killed (SIGKILL)", "1 failed")
	p.keys(t, "p")
	p.waitFor(t, "Prompt")
	p.keys(t, "and then?\r")
	p.waitFor(t, "has stopped")
	p.keys(t, "q")
	if code := p.exit(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	<-p.done
	_, after, back := strings.Cut(string(p.tail), "\x1b[?1049l") // leaves the alternate screen
	if !back || !strings.Contains(after, "llmtop: the engine's process was killed (SIGKILL)") {
		t.Errorf("the terminal is not restored before the error:\n%q", p.tail)
	}
}

// TestEngineKilledWithoutAScreen kills the process of the engine during a request. Report and recording have everything
// until then.
func TestEngineKilledWithoutAScreen(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir := t.TempDir()
	file, recording, at := filepath.Join(dir, "report.json"), filepath.Join(dir, "session.llmtop"), "unix:"+filepath.Join(dir, "s")
	run := exec.Command(path, "run", "--isolated", "--pace", "20", "-n", "1000", "--headless", "--json", file, "--record", recording, "--listen", at,
		"-p", "Call me Ishmael.")
	var stderr strings.Builder
	run.Stderr = &stderr
	run.Env = append(os.Environ(), "TMPDIR="+dir)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	engine := engineOf(t, run.Process.Pid)
	generates(t, run.Process, at)
	send(t, engine, syscall.SIGKILL)
	if err := run.Wait(); run.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "llmtop: the engine's process was killed (SIGKILL)") {
		t.Errorf("%v: %s", err, stderr.String())
	}
	var report struct {
		Partial bool
		Engine  struct {
			State, Reason string
			Log           []string `json:"last_log"`
		}
		Requests []struct {
			State  string
			Tokens []struct{}
		}
		Host struct{ Engine struct{ PID int } }
	}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !report.Partial || report.Engine.State != "failed" || !strings.Contains(report.Engine.Reason, "SIGKILL") || len(report.Requests) != 1 ||
		len(report.Engine.Log) == 0 || report.Requests[0].State != "failed" || len(report.Requests[0].Tokens) < 2 || report.Host.Engine.PID != engine {
		t.Errorf("%+v", report)
	}
	out, err := exec.Command(path, "replay", "--headless", "--json", "-", recording).Output()
	if err != nil || !strings.Contains(string(out), `"failed"`) {
		t.Errorf("the recording: %v\n%.500s", err, out)
	}
	left, err := filepath.Glob(filepath.Join(dir, "llmtop-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestKilledWithItsEngine checks that the engine ends when llmtop is killed.
func TestKilledWithItsEngine(t *testing.T) {
	t.Parallel()
	p := start(t, 100, 30, "--isolated")
	p.waitFor(t, "live")
	engine := engineOf(t, p.cmd.Process.Pid)
	send(t, p.cmd.Process.Pid, syscall.SIGKILL)
	if code := p.exit(t); code != -1 {
		t.Errorf("exit code %d", code)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(engine)).Output()
		if s := strings.TrimSpace(string(state)); s == "" || strings.HasPrefix(s, "Z") {
			return
		}
	}
	t.Error("the engine lives on")
}
