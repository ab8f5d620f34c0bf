package ui

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// piped is the screen on two pipes instead of a terminal; output receives all that it wrote.
type piped struct {
	in     *os.File
	out    *os.File
	output chan string
	done   chan error
}

// startPiped runs the screen.
func startPiped(t *testing.T, ctx context.Context, snapshots func() *store.Snapshot) *piped {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &piped{in: inW, out: outR, output: make(chan string, 1), done: make(chan error, 1)}
	go func() {
		all, _ := io.ReadAll(outR)
		p.output <- string(all)
	}()
	go func() {
		err := Run(ctx, Config{Sessions: One(Session{Snapshots: snapshots}), Input: inR, Output: outW, Environ: []string{"TERM=xterm-256color"}, FPS: MaxFPS})
		outW.Close()
		inW.Close()
		inR.Close()
		p.done <- err
	}()
	return p
}

// counted wraps a snapshot; it closes reached at the nth call.
func counted(s *store.Snapshot, n int) (snapshots func() *store.Snapshot, reached chan struct{}) {
	reached = make(chan struct{})
	return func() *store.Snapshot {
		if n--; n == 0 {
			close(reached)
		}
		return s
	}, reached
}

// restored fails unless the terminal was restored: main screen, visible cursor.
func restored(t *testing.T, out string) {
	t.Helper()
	if strings.LastIndex(out, "\x1b[?1049h") > strings.LastIndex(out, "\x1b[?1049l") {
		t.Errorf("the alternate screen is still on: %q", out)
	}
	if strings.LastIndex(out, "\x1b[?25l") > strings.LastIndex(out, "\x1b[?25h") {
		t.Errorf("the cursor is still hidden: %q", out)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cause := errors.New("the engine stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	snapshots, reached := counted(viewtest.LiveSnapshot(), 5)
	p := startPiped(t, ctx, snapshots)
	<-reached
	cancel(cause)
	if err := <-p.done; !errors.Is(err, cause) {
		t.Errorf("ended with %v, want its cause", err)
	}
	restored(t, <-p.output)
	p.out.Close()
}

func TestRunEndsOnQuit(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	snapshots, reached := counted(viewtest.LiveSnapshot(), 2)
	p := startPiped(t, t.Context(), snapshots)
	<-reached
	if _, err := p.in.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("ended with %v", err)
	}
	restored(t, <-p.output)
	p.out.Close()
}

func TestRunSurvivesPanics(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := 0
	p := startPiped(t, t.Context(), func() *store.Snapshot {
		if n++; n > 3 {
			panic("provoked by a test")
		}
		return viewtest.LiveSnapshot()
	})
	if err := <-p.done; !errors.Is(err, ErrPanic) {
		t.Errorf("ended with %v, want %v", err, ErrPanic)
	} else if !strings.Contains(err.Error(), "provoked by a test\n") || !strings.Contains(err.Error(), "update_sessions.go") {
		t.Errorf("the error lacks the cause or the place: %v", err)
	}
	restored(t, <-p.output)
	p.out.Close()
}
