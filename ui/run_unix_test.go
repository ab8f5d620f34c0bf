//go:build unix

package ui

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
)

// heard is what a terminal was sent.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write takes what the terminal was sent.
func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// A terminal is sent one frame, and nothing more while nothing changes.
func TestTerminalIsLeftAlone(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	master, terminal := openTerminal(t)
	var out heard
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, master)
		close(read)
	}()
	asks := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{
			Snapshots: func() *store.Snapshot {
				select {
				case asks <- struct{}{}:
				case <-ctx.Done():
				}
				return liveSnapshot()
			},
			Profile: theme.TrueColour, Input: terminal, Output: terminal, Environ: []string{"TERM=xterm-256color"}, FPS: MaxFPS,
		})
	}()
	for !strings.Contains(out.all(), "quit") {
		<-asks
	}
	for range 10 { // what was drawn last is on its way
		<-asks
	}
	before := out.all()
	for range 15 {
		<-asks
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

// A terminal that is gone ends the screen.
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
	s := *liveSnapshot()
	err := Run(t.Context(), Config{
		Snapshots: func() *store.Snapshot {
			s.Now += event.Time(time.Second)
			next := s
			return &next
		},
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
		t.Skipf("no pseudo-terminal to be had here: %v", err)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 36, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	return master, terminal
}
