//go:build unix

package program_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestSeveralSignalsRestoreTheTerminal checks that the terminal is restored after any sequence of signals.
func TestSeveralSignalsRestoreTheTerminal(t *testing.T) {
	t.Parallel()
	path := binary(t)
	const turns = 5
	for _, args := range [][]string{{"--discover", "off", "-n", "4"}, {"run", "--plain", "-n", "4"}} {
		for _, signals := range [][]syscall.Signal{
			{unix.SIGTERM, unix.SIGTERM},
			{unix.SIGINT, unix.SIGTERM, unix.SIGHUP},
			{unix.SIGHUP, unix.SIGINT},
			{unix.SIGQUIT},
			{unix.SIGTERM, unix.SIGQUIT},
			{unix.SIGTSTP, unix.SIGTERM, unix.SIGTERM},
		} {
			t.Run(fmt.Sprint(args[0], signals), func(t *testing.T) {
				t.Parallel()
				for turn := range turns {
					signalled(t, exec.Command(path, args...), turn, signals)
				}
			})
		}
	}
}

// signalled sends a program signals in a row: while it starts, in turn 0, and otherwise on its screen, after ever longer
// pauses.
func signalled(t *testing.T, c *exec.Cmd, turn int, signals []syscall.Signal) {
	t.Helper()
	terminal, end := openTerminal(t, 120, 36)
	before, err := term.GetState(end.Fd())
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout = end, end
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := startOn(t, terminal, 120, 36, c)
	if turn > 0 {
		p.waitFor(t, "llmtop demo MoE")
	} else {
		time.Sleep(20 * time.Millisecond)
	}
	for _, s := range signals {
		_ = p.cmd.Process.Signal(s) // it may have ended
		time.Sleep(time.Duration(turn) * 500 * time.Microsecond)
	}
	p.exit(t)
	checkRestored(t, p, end, before, signals)
}

// checkRestored fails unless the terminal is as before: its modes, the main screen, the cursor.
func checkRestored(t *testing.T, p *program, end *os.File, before *term.State, signals []syscall.Signal) {
	t.Helper()
	after, err := term.GetState(end.Fd())
	if err != nil {
		t.Fatal(err)
	}
	if *after != *before {
		t.Errorf("%v: the terminal is left as %+v, it was %+v", signals, *after, *before)
	}
	_ = end.Close()
	<-p.done
	if left := p.mode() & (vt10x.ModeAltScreen | vt10x.ModeHide | vt10x.ModeMouseMask | vt10x.ModeFocus); left != 0 {
		t.Errorf("%v: the terminal is left in mode %b", signals, left)
	}
}

// TestSuspendAsSessionLeader checks that the screen stays with a note, since nobody could continue the program, and
// accepts keys.
func TestSuspendAsSessionLeader(t *testing.T) {
	t.Parallel()
	p := start(t, 160, 45, "-n", "4")
	p.waitFor(t, "llmtop demo MoE", "q quit")
	for _, suspend := range []func(){
		func() { p.keys(t, "\x1a") },
		func() { _ = p.cmd.Process.Signal(unix.SIGTSTP) },
	} {
		suspend()
		p.waitFor(t, "cannot suspend: no shell would resume llmtop", "llmtop demo MoE")
		p.keys(t, "?") // any key removes the note
		p.waitFor(t, "Help")
		p.keys(t, "\x1b")
		p.until(t, "the help closed", func() bool { return !strings.Contains(p.text(), "Help") }) // it would close the next note
	}
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestSuspendUnderAShell checks that the program stops with the terminal restored, each time, and continues when the
// shell resumes it.
func TestSuspendUnderAShell(t *testing.T) {
	t.Parallel()
	path := binary(t)
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("no bash here: %v", err)
	}
	c := exec.Command(shell, "--norc", "--noprofile", "-i")
	c.Env = append(c.Environ(), "PS1=ready$ ")
	p := startCommand(t, 120, 36, c)
	p.waitFor(t, "ready$")
	for turn := range 6 {
		p.keys(t, "clear; "+path+" -n 4\r")
		p.waitFor(t, "llmtop demo MoE", "q quit")
		job, err := unix.IoctlGetInt(int(p.tty.Fd()), unix.TIOCGPGRP)
		if err != nil {
			t.Fatal(err)
		}
		if turn == 0 {
			p.keys(t, "\x1a")
		}
		for range turn {
			if err := unix.Kill(job, unix.SIGTSTP); err != nil {
				t.Fatal(err)
			}
		}
		p.waitFor(t, "Stopped")
		if left := p.mode() & (vt10x.ModeAltScreen | vt10x.ModeHide | vt10x.ModeMouseMask | vt10x.ModeFocus); left != 0 {
			t.Errorf("the terminal is left in mode %b", left)
		}
		p.keys(t, "fg\r")
		p.waitFor(t, "llmtop demo MoE", "q quit")
		p.keys(t, "q")
		p.waitFor(t, "ready$")
	}
	p.keys(t, "exit\r")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestHangup checks that a hangup ends a recording without a terminal, unless the parent ignores hangups, like nohup.
func TestHangup(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for name, ignored := range map[string]bool{"trap '' HUP; ": true, "": false} {
		folder := t.TempDir()
		file, socket := filepath.Join(folder, "r.llmtop"), "unix:"+filepath.Join(folder, "none")
		c := exec.Command("sh", "-c", name+`exec "$0" "$@"`, path, "attach", "--record", file, socket)
		notes, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(notes)
		for read := ""; !strings.Contains(read, "recording to ") || !strings.Contains(read, "connection to "); { // nobody listens there
			line, err := lines.ReadString('\n')
			if read += line; err != nil {
				t.Fatalf("it prints %q, %v", read, err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		_ = c.Process.Signal(unix.SIGHUP)
		select {
		case err := <-ended:
			if ignored || c.ProcessState.ExitCode() != exit.CodeFailed {
				t.Errorf("%q: ended with %v", name, err)
			}
			continue
		case <-time.After(map[bool]time.Duration{true: time.Second, false: 30 * time.Second}[ignored]):
			if !ignored {
				t.Errorf("%q: did not end", name)
			}
		}
		_ = c.Process.Signal(unix.SIGINT)
		if err := <-ended; c.ProcessState.ExitCode() != exit.CodeFailed { // nothing was reached
			t.Errorf("%q: interrupted, ended with %v", name, err)
		}
	}
}

// TestInterruptedComparison checks that a signal between the runs of a comparison is no outcome of it.
func TestInterruptedComparison(t *testing.T) {
	t.Parallel()
	path := binary(t)
	c := exec.Command(path, "compare", "--repeats", "50", "--run", "run --headless -n 8", "--run", "run --headless -n 9")
	notes, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(notes)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "run 2 of 100") {
	}
	_ = c.Process.Signal(unix.SIGINT)
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	_ = c.Wait() // see the exit code
	if code := c.ProcessState.ExitCode(); code != 130 || last != "llmtop: interrupted: nothing was compared" {
		t.Errorf("code %d, %q", code, last)
	}
}
