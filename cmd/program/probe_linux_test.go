package program_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("probes need root")
	}
	if err := probe.Permitted(); err != nil {
		t.Skipf("probes need tracefs: %v", err)
	}
	path := binary(t)
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
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	path := binary(t)
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

// decodes is a program with the functions that probes need. It calls llama_decode with batches of as many tokens as its
// argument says, once its input ends.
const decodes = `
#include <stdlib.h>
#include <unistd.h>
struct batch { int n; void *rest[6]; };
int llama_decode(void *c, struct batch b) { return b.n > 0; }
int llama_memory_seq_rm(void *m, int seq, int from, int to) { return 1; }
int main(int argc, char **argv) {
	struct batch b = {0};
	char c;
	b.n = atoi(argv[1]);
	while (read(0, &c, 1) > 0) {}
	for (int i = 0; i < 3000; i++) { llama_decode(&b, b); llama_memory_seq_rm(0, 0, 0, 0); usleep(20000); }
}`

// TestProbeEnds checks that llmtop probe, and attach without a screen, end with the process that they watch: with success
// if it has ended, with an error if its records cannot be those of llama.cpp.
func TestProbeEnds(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("probes need root")
	}
	if err := probe.Permitted(); err != nil {
		t.Skipf("probes need tracefs: %v", err)
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip(err)
	}
	path := binary(t)
	program := filepath.Join(t.TempDir(), "decodes")
	compile := exec.Command("cc", "-x", "c", "-", "-O0", "-rdynamic", "-o", program)
	compile.Stdin = strings.NewReader(decodes)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const refused = "a batch has -5 tokens: this is not the llama_decode that llmtop reads\n"
	for _, c := range []struct {
		command []string
		tokens  string
		code    int
		want    string // %d is the process
	}{
		{[]string{"probe"}, "-5", 2, "llmtop: probe process %d: " + refused},
		{[]string{"probe"}, "1", 0, "process %d: the process has ended\n"},
		{[]string{"attach", "--headless", "--csv", filepath.Join(t.TempDir(), "a.csv")}, "-5", 1, "llmtop: attach pid:%d: " + refused},
		{[]string{"attach", "--headless", "--csv", filepath.Join(t.TempDir(), "a.csv")}, "1", 0, "pid:%d: stopped: the process has ended\n"},
		{[]string{"attach", "--record", filepath.Join(t.TempDir(), "a.llmtop")}, "-5", 1, "llmtop: attach pid:%d: " + refused},
	} {
		watched := exec.Command(program, c.tokens)
		hold, err := watched.StdinPipe()
		if err := errors.Join(err, watched.Start()); err != nil {
			t.Fatal(err)
		}
		pid := watched.Process.Pid
		watching := exec.Command(path, append(c.command, fmt.Sprint("pid:", pid))...)
		notes, err := watching.StderrPipe()
		if err := errors.Join(err, watching.Start()); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(notes)
		if _, err := said.ReadString('\n'); err != nil { // it watches
			t.Fatalf("%q: %v", c.command, err)
		}
		_ = hold.Close()
		if c.code == 0 {
			_ = watched.Process.Kill()
			_ = watched.Wait()
		}
		rest, err := io.ReadAll(said)
		if err != nil {
			t.Fatal(err)
		}
		_ = watching.Wait()
		_, _ = watched.Process.Kill(), watched.Wait()
		if want := fmt.Sprintf(c.want, pid); watching.ProcessState.ExitCode() != c.code || !strings.Contains(string(rest), want) {
			t.Errorf("%q %s: exit code %d, it says %q, want %d and %q", c.command, c.tokens, watching.ProcessState.ExitCode(), rest, c.code, want)
		}
	}
}

// besideSDK is a process with the Python SDK that computes with CUDA, its arguments are the folder of the SDK, a stand-in
// for libcudart and a socket: it generates tokens, each with a CUDA graph.
const besideSDK = `
import ctypes, sys, time
sys.path.insert(0, sys.argv[1])
import llmtop
cuda = ctypes.CDLL(sys.argv[2])
top = llmtop.serve("beside", listen="unix:" + sys.argv[3])
print("ready", flush=True)
while True:
    with top.request(prompt_tokens=4) as r:
        for token in range(20):
            with top.step(decode=1, request=r) as s:
                cuda.cudaMemcpyAsync(None, None, ctypes.c_size_t(4000), 1, None)
                cuda.cudaGraphLaunch(None, None)
                cuda.cudaStreamSynchronize(None)
            r.token(token, step=s)
    time.sleep(.05)
`

// TestCUDABesideSDK attaches to the event socket of a process and to the process: what its probes count is that of the
// engine of the socket, which is the only one.
func TestCUDABesideSDK(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("probes need root")
	}
	if err := probe.Permitted(); err != nil {
		t.Skipf("probes need tracefs: %v", err)
	}
	dir := t.TempDir()
	lib, at, out := filepath.Join(dir, "libcudart.so.13"), filepath.Join(dir, "a.sock"), filepath.Join(dir, "report.json")
	if text, err := exec.Command("cc", "-shared", "-fPIC", "-o", lib, "../../runtime/source/probe/testdata/cuda/cudart.c").CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v %s", err, text)
	}
	python := exec.Command("python3", "-c", besideSDK, "../../sdk/python", lib, at)
	said, err := python.StdoutPipe()
	if err == nil {
		err = python.Start()
	}
	if err != nil {
		t.Skipf("no Python: %v", err)
	}
	defer func() { _ = python.Process.Kill(); _ = python.Wait() }()
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q %v", line, err)
	}
	text, err := exec.Command(binary(t), "attach", "unix:"+at, fmt.Sprint("pid:", python.Process.Pid), "--headless", "--for", "6s", "--out", out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var report struct {
		Host struct {
			Engine struct {
				PID    int
				Graphs float64 `json:"gpu_graphs_per_s"`
				To     float64 `json:"copied_to_gpu_bytes_per_s"`
			}
		}
		Totals struct {
			Steps int
			Rate  float64 `json:"ttps"`
		}
		Replicas []any
	}
	file, err := os.ReadFile(out)
	if err == nil {
		err = json.Unmarshal(file, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := &report.Host.Engine; report.Replicas != nil || e.PID != python.Process.Pid || report.Totals.Steps == 0 ||
		e.Graphs < report.Totals.Rate/2 || e.To < 3900*e.Graphs || e.To > 4100*e.Graphs {
		t.Errorf("%+v, want one engine with a graph and 4000 bytes for each token", report)
	}
}
