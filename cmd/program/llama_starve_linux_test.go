package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// addressSpace returns the virtual size of a process in bytes.
func addressSpace(t *testing.T, pid int) uint64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var pages uint64
	if err == nil {
		_, err = fmt.Sscan(string(raw), &pages)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}

// TestLlamaStarved limits the memory of the process of the engine to what it has, and makes it need more during a
// session. The report keeps everything until then.
func TestLlamaStarved(t *testing.T) {
	t.Parallel()
	withLlama(t)
	path := binary(t)
	dir := t.TempDir()
	file, long, at := filepath.Join(dir, "report.json"), filepath.Join(dir, "long.txt"), "unix:"+filepath.Join(dir, "s")
	if err := os.WriteFile(long, []byte(strings.Repeat("Call me Ishmael. ", 50_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(path, "run", builtIn, "--engine", "llamacpp", "--pace", "10", "-n", "30", "--headless", "--json", file, "--listen", at,
		"-p", "Call me Ishmael.", "-f", long)
	var stderr strings.Builder
	run.Stderr = &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	engine := engineOf(t, run.Process.Pid)
	generates(t, run.Process, at)
	limit := unix.Rlimit{Cur: addressSpace(t, engine), Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(engine, unix.RLIMIT_AS, &limit, nil); err != nil {
		_ = run.Process.Signal(syscall.SIGKILL)
		t.Fatal(err)
	}
	err := run.Wait()
	words := stderr.String()
	if run.ProcessState.ExitCode() != 1 || !strings.Contains(words, "llmtop: the engine's process") {
		t.Errorf("%v: %s", err, words)
	}
	var report llamaReport
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report.Engine.Reason)
	if !report.Partial || report.Engine.State != "failed" || len(report.Requests) != 2 || len(report.Requests[0].Tokens) == 0 ||
		report.Requests[1].State != "failed" {
		t.Errorf("%+v", report)
	}
}
