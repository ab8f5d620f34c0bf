package cmd_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/probe"
)

// nobody is a user without privileges, who called sudo in these tests.
const nobody = 65534

// status returns the fields of a file /proc/PID/task/TID/status.
func status(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

// TestProbeGivesUpPrivileges starts llmtop probe as sudo does: all its threads lose the privileges, and the event socket
// is that of the user who called sudo.
func TestProbeGivesUpPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("probes need root")
	}
	if err := probe.Permitted(); err != nil {
		t.Skipf("probes need tracefs: %v", err)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	server := peer.LlamaServer(t, "", "--threads", "1")
	c := exec.Command(path, "probe", "--expert-sample", "1", fmt.Sprint(server.PID))
	c.Env = append(os.Environ(), fmt.Sprint("SUDO_UID=", nobody), fmt.Sprint("SUDO_GID=", nobody))
	notes, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("probe ended with %v", err)
		}
	}()
	line, err := bufio.NewReader(notes).ReadString('\n')
	_, at, ok := strings.Cut(strings.TrimSpace(line), "llmtop attach unix:")
	if err != nil || !ok {
		t.Fatalf("probe says %q: %v", line, err)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.Process.Pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads: %v", len(threads), err)
	}
	ids, none := strings.TrimSpace(strings.Repeat(fmt.Sprint(nobody, " "), 4)), strings.Repeat("0", 16)
	for _, thread := range threads {
		got := status(t, thread)
		for key, want := range map[string]string{"Uid": ids, "Gid": ids, "Groups": fmt.Sprint(nobody), "CapEff": none, "CapPrm": none, "CapAmb": none} {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", thread, key, got[key], want)
			}
		}
	}
	for file, mode := range map[string]os.FileMode{at: 0o600, filepath.Dir(at): 0o700} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != nobody || info.Mode().Perm() != mode {
			t.Errorf("%s has the owner %d and the mode %v", file, owner.Uid, info.Mode())
		}
	}
}

// TestProbesNotPermitted checks that without root the exact command is named, and that attach goes on by HTTP.
func TestProbesNotPermitted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	server := peer.LlamaServer(t, "")
	pid := fmt.Sprint(server.PID)
	visible, err := os.MkdirTemp("/tmp", "llmtop") // that of the tests is this user's only
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(visible)
	program := filepath.Join(visible, "llmtop")
	text, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(program, text, 0o755), os.Chmod(visible, 0o755)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		c := exec.Command(program, args...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.Env = []string{"HOME=" + visible}
		c.Dir = visible
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	for _, args := range [][]string{{"probe", "--expert-sample", "1", pid}, {"probe", "--dry-run", pid}} {
		want := "permission denied: run sudo " + program + " " + strings.Join(args, " ") + "\n"
		if out, code := run(args...); code != 2 || !strings.HasSuffix(out, want) {
			t.Errorf("%q: exit code %d, %q, want %q at the end", args, code, out, want)
		}
	}
	out, code := run("attach", "--headless", "--for", "1s", "pid:"+pid)
	for _, want := range []string{"is watched by HTTP, not by probes", "run sudo " + program + " attach pid:" + pid + "\n", "engine llama.cpp"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d; the output lacks %q:\n%s", code, want, out)
		}
	}
}
