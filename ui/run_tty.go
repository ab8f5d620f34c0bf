package ui

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// tty is the terminal; a failed write means that it is gone, which ends the screen.
//
// The terminal library sets and restores the modes of the terminal. It would also parse each frame and compare it cell by
// cell, which takes longer than all the rest of a frame; so frames of painters pass it by: it has a blank one, and after
// whatever clears the screen, the whole frame is written again.
type tty struct {
	*os.File
	lost     context.CancelCauseFunc
	throttle *throttle // nil: bytes are not counted
	once     sync.Once

	mu     sync.Mutex // guards the fields below, and is held during a write
	frame  string     // the newest one of a painter, rows separated by newlines; "": none
	ready  bool       // the library has entered the alternate screen
	synced bool       // the terminal draws what is between two marks at once
}

// painter is a screen that knows what a frame changes on the terminal.
type painter interface {
	// Changes returns what turns the frame before into that of the last View; nil if it is the same.
	Changes() []byte
}

// Write writes what comes from the terminal library, and the frame if that has cleared the screen.
func (t *tty) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	enter, leave := bytes.LastIndex(p, []byte(ansi.SetModeAltScreenSaveCursor)), bytes.LastIndex(p, []byte(ansi.ResetModeAltScreenSaveCursor))
	if enter != leave {
		t.ready = enter > leave
	}
	all := p
	if cleared := bytes.Contains(p, []byte(ansi.EraseEntireScreen)) || bytes.Contains(p, []byte(ansi.EraseScreenBelow)); cleared && t.ready && t.frame != "" {
		all = append(slices.Clone(p), ansi.ResetStyle...)
		y := 0
		for row := range strings.SplitSeq(t.frame, "\n") {
			y++
			all = append(append(all, ansi.CursorPosition(1, y)...), row...)
		}
	}
	n, err := t.write(all)
	return min(n, len(p)), err
}

// paint writes what changes to a new frame of a painter.
func (t *tty) paint(frame string, changes []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frame = frame; !t.ready || len(changes) == 0 {
		return
	}
	if t.synced {
		changes = slices.Concat([]byte(ansi.SetModeSynchronizedOutput), changes, []byte(ansi.ResetModeSynchronizedOutput))
	}
	_, _ = t.write(changes) // an error ends the screen
}

// synchronise makes the terminal draw each frame at once.
func (t *tty) synchronise() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = true
}

// write writes to the terminal and counts the bytes.
func (t *tty) write(p []byte) (int, error) {
	n, err := t.File.Write(p)
	if t.throttle != nil {
		t.throttle.sent.Add(int64(n))
	}
	if err != nil {
		t.once.Do(func() { t.lost(fmt.Errorf("write to terminal: %w", err)) })
	}
	return n, err
}
