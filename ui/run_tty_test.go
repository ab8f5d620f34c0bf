package ui

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// TestFramesPassTheLibraryBy plays what the terminal library writes, and frames of a painter between it.
func TestFramesPassTheLibraryBy(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	sent := newThrottle(false)
	screen := &tty{File: writer, lost: func(err error) { t.Error(err) }, throttle: &sent}
	library := func(text string) {
		t.Helper()
		if n, err := screen.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("wrote %d of %d bytes: %v", n, len(text), err)
		}
	}
	wrote := func(name, want string) {
		t.Helper()
		got := make([]byte, len(want)+1000)
		_, _ = io.WriteString(writer, "|") // so that there is something to read
		n, _ := reader.Read(got)
		if text := strings.TrimSuffix(string(got[:n]), "|"); text != want {
			t.Errorf("%s: wrote %q, want %q", name, text, want)
		}
	}
	const whole = "\x1b[Hone\x1b[2;1Htwo"
	enter, leave := ansi.SetModeAltScreenSaveCursor+ansi.CursorHomePosition+ansi.EraseEntireScreen, ansi.ResetModeAltScreenSaveCursor

	screen.paint("one\ntwo", []byte("changes"))
	library("query")
	wrote("a frame before the screen is entered", "query")
	library(enter)
	wrote("entering", enter+ansi.ResetStyle+whole)
	screen.paint("one\ntwo", nil)
	screen.paint("one\ntwo", []byte("changes"))
	library("modes")
	wrote("a frame", "changesmodes")
	library(ansi.EraseScreenBelow)
	wrote("clearing", ansi.EraseScreenBelow+ansi.ResetStyle+whole)
	screen.synchronise()
	screen.paint("one\nnew", []byte("changes"))
	wrote("a frame at once", ansi.SetModeSynchronizedOutput+"changes"+ansi.ResetModeSynchronizedOutput)
	library(leave + ansi.EraseScreenBelow)
	screen.paint("one\ntwo", []byte("changes"))
	wrote("leaving", leave+ansi.EraseScreenBelow)
	library(leave + enter)
	wrote("entering again", leave+enter+ansi.ResetStyle+whole)
	if n := sent.sent.Load(); n == 0 {
		t.Error("no byte was counted")
	}

	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	screen.lost = end
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	screen.paint("one\ntwo", []byte("changes"))
	if err := context.Cause(ctx); err == nil || !strings.Contains(err.Error(), "write to terminal") {
		t.Errorf("a lost terminal does not end the screen: %v", err)
	}
}
