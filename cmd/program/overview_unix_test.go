//go:build unix

package program_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestOverviewShowsTheBuiltInModel starts llmtop without arguments and waits until every pane has numbers.
func TestOverviewShowsTheBuiltInModel(t *testing.T) {
	t.Parallel()
	p := start(t, 160, 45)
	p.waitFor(t, "llmtop demo MoE", "Q8_0", "8L", "16E", "paced 40", "TTFT", "ITL", "Experts", "tok/s")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("q ended the program with %d, want 0", code)
	}
}

// TestPromptIsGenerated types a prompt and waits for the answer.
func TestPromptIsGenerated(t *testing.T) {
	t.Parallel()
	p := start(t, 160, 45)
	p.waitFor(t, "ITL")
	p.keys(t, "p")
	p.waitFor(t, "prompt")
	p.keys(t, "The white whale said\r")
	p.waitFor(t, "The white whale said")
	p.keys(t, "q")
	p.exit(t)
}

// TestKeys tries help, zoom, themes and pause.
func TestKeys(t *testing.T) {
	t.Parallel()
	p := start(t, 120, 36)
	p.waitFor(t, "ITL", "Experts")
	p.keys(t, "?")
	p.waitFor(t, "─ Help ", "Keys")
	p.keys(t, "\x1b")
	p.waitFor(t, "Experts")
	p.keys(t, "\t\r")
	time.Sleep(300 * time.Millisecond)
	p.keys(t, "\x1b")
	p.waitFor(t, "Experts", "TTFT")
	p.keys(t, "t ")
	p.waitFor(t, "paused")
	p.keys(t, " q")
	if code := p.exit(t); code != 0 {
		t.Errorf("q ended the program with %d, want 0", code)
	}
}

// TestResize resizes from tiny to huge and back while the model generates.
func TestResize(t *testing.T) {
	t.Parallel()
	p := start(t, 80, 24)
	p.waitFor(t, "TTFT")
	for _, size := range [][2]uint16{{1, 1}, {10, 3}, {60, 18}, {400, 120}, {200, 60}, {80, 24}} {
		p.mu.Lock()
		p.screen.Resize(int(size[0]), int(size[1]))
		p.mu.Unlock()
		if err := pty.Setsize(p.tty, &pty.Winsize{Cols: size[0], Rows: size[1]}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond)
	}
	p.waitFor(t, "TTFT", "ITL")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d after resizing, want 0", code)
	}
}

// leaves are the sequences that restore a terminal: the main screen and a visible cursor.
var leaves = []string{"\x1b[?1049l", "\x1b[?25h"}

// TestSignalsRestoreTheTerminal ends the program with the signals of supervisors, closed windows and users.
func TestSignalsRestoreTheTerminal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, 100, 30)
			p.waitFor(t, "TTFT")
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			p.exit(t)
			p.restored(t)
		})
	}
}

// restored checks that the last output of the program restored the terminal.
func (p *program) restored(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		p.mu.Lock()
		tail := string(p.tail)
		p.mu.Unlock()
		missing := ""
		for _, want := range leaves {
			if !strings.Contains(tail, want) {
				missing = want
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("terminal was not restored: %q is missing in the last output %q", missing, tail)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLostTerminal closes the terminal under the program, like a dropped connection.
func TestLostTerminal(t *testing.T) {
	t.Parallel()
	p := start(t, 100, 30)
	p.waitFor(t, "TTFT")
	if err := p.tty.Close(); err != nil {
		t.Fatal(err)
	}
	p.exit(t)
}
