//go:build unix

package terminal

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
)

// output collects the bytes written to a terminal.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (n *output) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *output) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// blocked is a terminal that accepts no bytes until it is closed.
type blocked chan struct{}

// Write implements io.Writer.
func (b blocked) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}

// openTerminal opens a terminal and returns a function that reports whether it is in its first state.
func openTerminal(t *testing.T) (terminal *os.File, restored func() bool) {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal available: %v", err)
	}
	t.Cleanup(func() {
		master.Close()
		terminal.Close()
	})
	before, err := term.GetState(terminal.Fd())
	if err != nil {
		t.Fatal(err)
	}
	return terminal, func() bool {
		now, err := term.GetState(terminal.Fd())
		return err == nil && *now == *before
	}
}

// TestGiveBack checks that a terminal whose user does not restore it in time is restored, even if it accepts no output,
// and that one already restored is left alone.
func TestGiveBack(t *testing.T) {
	defer func() { taken.closing = false }()
	slow, slowIsBack := openTerminal(t)
	stuck, stuckIsBack := openTerminal(t)
	ended, endedIsBack := openTerminal(t)
	var slowOut, endedOut output
	never := make(blocked)
	endSlow := Take(slow, &slowOut, "leave")
	endStuck := Take(stuck, never, "leave")
	Take(ended, &endedOut, "left")()
	if slowIsBack() || stuckIsBack() {
		t.Fatal("the terminals are not raw")
	}
	GiveBack(0)
	if !slowIsBack() || slowOut.all() != "leave" {
		t.Errorf("restored: %v, wrote %q", slowIsBack(), slowOut.all())
	}
	if !stuckIsBack() {
		t.Error("a terminal that takes no output was not restored")
	}
	if got := endedOut.all(); got != "left" || !endedIsBack() {
		t.Errorf("wrote %q to a terminal that was restored: %v", got, endedIsBack())
	}
	endSlow()
	close(never)
	endStuck()
}

// TestGiveBackWaits checks that GiveBack waits for users that restore their terminals themselves.
func TestGiveBackWaits(t *testing.T) {
	defer func() { taken.closing = false }()
	terminal, isBack := openTerminal(t)
	var out output
	restored := Take(terminal, &out, "left")
	returned := make(chan struct{})
	go func() {
		GiveBack(time.Hour)
		close(returned)
	}()
	for over := false; !over; time.Sleep(time.Millisecond) {
		taken.mu.Lock()
		over = taken.closing
		taken.mu.Unlock()
	}
	select {
	case <-returned:
		t.Error("did not wait")
	default:
	}
	restored()
	<-returned
	if got := out.all(); got != "left" || !isBack() {
		t.Errorf("wrote %q, restored: %v", got, isBack())
	}
}
