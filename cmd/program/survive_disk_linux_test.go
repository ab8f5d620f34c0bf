package program_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFullDiskOnTheScreen checks that a full disk ends only the recording, that the screen shows it, and that the
// recording can be replayed.
func TestFullDiskOnTheScreen(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir := t.TempDir()
	const mount = `mount -t tmpfs -o size=48k none "$0"`
	if out, err := exec.Command("unshare", "-Urm", "sh", "-c", mount, dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %v: %s", err, out)
	}
	file := filepath.Join(dir, "session.llmtop")
	p := startCommand(t, 160, 45, exec.Command("unshare", "-Urm", "sh", "-c", mount+` && exec "$@"`, dir, path, "run", "--pace", "1000", "--record", file))
	p.waitFor(t, "live", "llmtop demo MoE", "REC")
	p.waitFor(t, "REC failed")
	done := p.text()
	for end := time.Now().Add(30 * time.Second); requestsDone(done) >= requestsDone(p.text()); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the run does not go on:\n%s", p.text())
		}
	}
	kept := filepath.Join(t.TempDir(), "kept.llmtop")
	copyFile(t, fmt.Sprintf("/proc/%d/root%s", p.cmd.Process.Pid, file), kept) // the disk ends with the program
	p.keys(t, "q")
	if code := p.exit(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	p.waitFor(t, "llmtop: record to")
	if shown := strings.ReplaceAll(p.text(), "\n", ""); !strings.Contains(shown, "no space left on device") {
		t.Errorf("it prints %s", strings.TrimSpace(shown))
	}
	if requests := generated(t, kept); len(requests) == 0 {
		t.Error("the recording is empty")
	}
}

// TestFullDiskOnOutput checks that no command succeeds whose output is lost.
func TestFullDiskOnOutput(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for _, args := range [][]string{{"version"}, {"--help"}, {"discover"}, {"run", "--headless", "-n", "1", "-p", "x"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		cmd := exec.Command(path, args...)
		cmd.Stdout, cmd.Stderr = full, &stderr
		err = cmd.Run()
		full.Close()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%v: %v\n%s", args, err, stderr.String())
		}
	}
}

// requestsDone returns the number of finished requests on the screen.
func requestsDone(screen string) (n int) {
	for at := range screen {
		if k, err := fmt.Sscanf(screen[at:], " %d done", &n); k == 1 && err == nil {
			return n
		}
	}
	return 0
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}
