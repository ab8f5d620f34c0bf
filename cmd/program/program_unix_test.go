//go:build unix

package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// binary returns the path of llmtop. In tests it is this program, which runs llmtop under that name (TestMain); in
// benchmarks it is built like a release.
func binary(tb testing.TB) string {
	tb.Helper()
	find := func() (string, error) { return exec.LookPath("llmtop") }
	if _, measured := tb.(*testing.B); measured {
		find = released
	}
	path, err := find()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// released builds llmtop like a release, once for all benchmarks.
var released = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "llmtop")
	build := exec.Command("go", "build", "-o", path, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// program is a running llmtop on its own terminal.
type program struct {
	cmd    *exec.Cmd
	tty    *os.File
	screen vt10x.Terminal

	mu     sync.Mutex
	bytes  int64  // written to the terminal
	frames int    // output without a pause counts as one frame
	tail   []byte // the last few KB of output
	done   chan struct{}
	began  time.Time
}

// start runs llmtop on a pseudo-terminal of the given size.
func start(tb testing.TB, cols, rows int, args ...string) *program {
	tb.Helper()
	path := binary(tb)
	return startCommand(tb, cols, rows, exec.Command(path, args...))
}

// startCommand runs any command like start.
func startCommand(tb testing.TB, cols, rows int, command *exec.Cmd) *program {
	tb.Helper()
	terminal, end := openTerminal(tb, cols, rows)
	defer end.Close()
	command.Stdin, command.Stdout, command.Stderr = end, end, end
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return startOn(tb, terminal, cols, rows, command)
}

// openTerminal opens a pseudo-terminal: the user's end, and that of the programs.
func openTerminal(tb testing.TB, cols, rows int) (user, programs *os.File) {
	tb.Helper()
	user, programs, err := pty.Open()
	if err != nil {
		tb.Fatal(err)
	}
	if err := pty.Setsize(programs, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		tb.Fatal(err)
	}
	return user, programs
}

// startOn runs a command with its files set, and reads the output of a terminal.
func startOn(tb testing.TB, terminal *os.File, cols, rows int, command *exec.Cmd) *program {
	tb.Helper()
	p := &program{cmd: command, tty: terminal, screen: vt10x.New(vt10x.WithSize(cols, rows)), done: make(chan struct{})}
	// Tests must not depend on other engines on the machine, unless they set this.
	p.cmd.Env = append([]string{"LLMTOP_DISCOVER=off"}, command.Environ()...)
	p.cmd.Env = append(p.cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "XDG_CONFIG_HOME="+tb.TempDir(), "XDG_STATE_HOME="+tb.TempDir())
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go p.read()
	tb.Cleanup(p.kill)
	return p
}

// mode returns the modes that the program set on the terminal.
func (p *program) mode() vt10x.ModeFlag {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.Mode()
}

// pause is the shortest time between two frames.
const pause = 20 * time.Millisecond

// count returns the number of frames drawn.
func (p *program) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frames
}

// read feeds the output to the emulator until the terminal closes.
func (p *program) read() {
	defer close(p.done)
	buf := make([]byte, 64<<10)
	var whole runes
	var last time.Time
	for {
		n, err := p.tty.Read(buf)
		p.mu.Lock()
		if time.Since(last) > pause {
			p.frames++
		}
		last = time.Now()
		p.bytes += int64(n)
		p.tail = append(p.tail[max(0, len(p.tail)-4096):], buf[:n]...)
		_, _ = p.screen.Write(whole.next(buf[:n]))
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// runes reassembles characters that a read split, which the emulator would treat as errors.
type runes struct{ rest []byte }

// next returns the complete characters read so far.
func (r *runes) next(read []byte) []byte {
	all := append(r.rest, read...)
	end := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if b := all[len(all)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(all[len(all)-i:]) {
				end = len(all) - i
			}
			break
		}
	}
	r.rest = append([]byte(nil), all[end:]...)
	return all[:end]
}

// text returns the text on the screen.
func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// patience is how long tests wait for a program before they fail. Programs of other tests may use the cores.
const patience = 90 * time.Second

// waitFor polls the screen until it shows all of want.
func (p *program) waitFor(tb testing.TB, want ...string) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for {
		screen, missing := p.text(), ""
		for _, w := range want {
			if !strings.Contains(screen, w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("screen never showed %q; it shows:\n%s", missing, screen)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// keys types into the program.
func (p *program) keys(tb testing.TB, keys string) {
	tb.Helper()
	if _, err := p.tty.WriteString(keys); err != nil {
		tb.Fatalf("type %q: %v", keys, err)
	}
}

// exit waits for the end of the program and returns its exit code, -1 after a signal.
func (p *program) exit(tb testing.TB) int {
	tb.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case <-ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		tb.Fatalf("program did not end; screen:\n%s", p.text())
		return 0
	}
}

func (p *program) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		_ = p.cmd.Wait()
	}
	_ = p.tty.Close()
	<-p.done
}
