//go:build unix

package ui

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// terminalOutput collects the bytes sent to a terminal.
type terminalOutput struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (h *terminalOutput) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *terminalOutput) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// The screen sends one frame to a terminal, and nothing more while nothing changes.
func TestTerminalIsLeftAlone(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	master, terminal := openTerminal(t)
	var out terminalOutput
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, master)
		close(read)
	}()
	snapshots := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{
			Sessions: One(Session{Snapshots: func() *store.Snapshot {
				select {
				case snapshots <- struct{}{}:
				case <-ctx.Done():
				}
				return viewtest.LiveSnapshot()
			}}),
			Profile: theme.TrueColour, Input: terminal, Output: terminal, Environ: []string{"TERM=xterm-256color"}, FPS: MaxFPS,
		})
	}()
	for !strings.Contains(out.all(), "quit") {
		<-snapshots
	}
	for range 10 { // until the last frame was flushed
		<-snapshots
	}
	before := out.all()
	for range 15 {
		<-snapshots
	}
	if after := out.all(); after != before {
		t.Errorf("sent %q without a change", after[len(before):])
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	terminal.Close()
	<-read
	restored(t, out.all())
	master.Close()
}

// A process that continues after a stop that it could not see takes the terminal again, because the shell has changed it.
func TestTerminalIsTakenAgain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	master, terminal := openTerminal(t)
	var out terminalOutput
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, master)
		close(read)
	}()
	cooked, err := term.GetState(terminal.Fd())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{
			Sessions: One(Session{Snapshots: viewtest.LiveSnapshot}), Profile: theme.TrueColour, Input: terminal, Output: terminal, Environ: []string{"TERM=xterm-256color"}, FPS: MaxFPS,
		})
	}()
	drawn := func(times int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); strings.Count(out.all(), "quit") < times; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the screen was not drawn %d times", times)
			}
		}
	}
	drawn(1)
	if err := term.Restore(terminal.Fd(), cooked); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	drawn(2)
	if now, err := term.GetState(terminal.Fd()); err != nil || *now == *cooked {
		t.Errorf("the terminal is as the shell left it, %v", err)
	}
	cancel()
	<-done
	if now, err := term.GetState(terminal.Fd()); err != nil || *now != *cooked {
		t.Errorf("the terminal was not restored, %v", err)
	}
	terminal.Close()
	<-read
	restored(t, out.all())
	master.Close()
}

// A lost terminal ends the screen.
func TestRunEndsWithItsTerminal(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	master, terminal := openTerminal(t)
	defer terminal.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 1<<16)
		_, _ = master.Read(buf)
		master.Close()
	}()
	s := *viewtest.LiveSnapshot()
	err := Run(t.Context(), Config{
		Sessions: One(Session{Snapshots: func() *store.Snapshot {
			s.Now += event.Time(time.Second)
			next := s
			return &next
		}}),
		Profile: theme.TrueColour, Input: terminal, Output: terminal, Environ: []string{"TERM=xterm-256color"}, FPS: MaxFPS,
	})
	if err == nil {
		t.Error("ended without an error")
	}
	<-read
}

func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal available: %v", err)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 36, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	return master, terminal
}
