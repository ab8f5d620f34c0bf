//go:build unix

package cmd_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hinshun/vt10x"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native"
	"github.com/llmtop/llmtop/ui"
)

// TestReplayedFramesEqualLiveOnes: the built-in engine is watched and recorded; at moments at which nothing happens, a replay of the
// recording draws the same frame, cell by cell.
func TestReplayedFramesEqualLiveOnes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "session.llmtop")
	live := recorded(t, file)
	rec, err := trace.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var s *store.Store
	var player *trace.Player
	fresh := func() event.Sink {
		s = store.New(store.Options{Now: player.Now, Wall: player.Wall})
		return s
	}
	player, err = trace.NewPlayer(rec, trace.PlayOptions{
		Codec: func() trace.Codec { return &wire.Codec{} }, Paused: true, Reset: fresh, Drain: func() { s.Snapshot() },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- player.Run(ctx, fresh()) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for i, want := range live {
		if err := player.SeekTime(want.Now); err != nil {
			t.Fatal(err)
		}
		for player.Status().State == trace.Seeking {
			time.Sleep(time.Millisecond)
		}
		got := *s.Snapshot()
		want := *want
		want.Wall = rec.Wall(want.Now)         // the clock was read twice
		want.Verdicts, got.Verdicts = nil, nil // which stay for a while, and so depend on the frames before
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmp.Exporter(inPackage)); diff != "" {
			t.Fatalf("moment %d (-live +replayed):\n%s", i, diff)
		}
		if diff := cmp.Diff(drawn(t, &want), drawn(t, &got)); diff != "" {
			t.Errorf("moment %d is drawn differently (-live +replayed):\n%s", i, diff)
		}
	}
}

// inPackage has fields compared that only their packages see.
func inPackage(reflect.Type) bool { return true }

// recorded has the built-in engine generate a few texts, and returns what was to be seen after each of them.
func recorded(t *testing.T, file string) (frames []*store.Snapshot) {
	t.Helper()
	clock := runtime.NewClock()
	s := store.New(store.Options{Now: clock.Now, Wall: func() time.Time { return time.Unix(0, clock.Epoch()+int64(clock.Now())) }})
	recorder, err := trace.Record(file, trace.RecordOptions{Codec: &wire.Codec{}, Now: clock.Now, Epoch: clock.Epoch(), Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	load := func(_ context.Context, report func(runtime.LoadStage)) (runtime.Engine, error) {
		return native.OpenDemo(native.Options{Threads: 1, Report: report})
	}
	engine := runtime.New(load, runtime.Options{Clock: clock, Sampler: native.NewSampler, Hooks: runtime.Hooks{Split: true, Experts: true}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx, event.Tee{s, recorder}) }()
	for i, prompt := range []string{"Call me Ishmael.", "And it came to pass", "whale (noun):"} {
		h, err := engine.Submit(runtime.Request{
			Text: prompt, MaxTokens: 60 + 40*i, IgnoreEOS: true, Params: runtime.Params{Seed: 7}, SendText: true, TopLogprobs: 2, Picks: i == 1, Group: prompt[:3],
		})
		if err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		frames = append(frames, settled(s))
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	if lost := recorder.Status().Lost; lost != (event.Lost{}) {
		t.Fatalf("the recording lacks %v", lost)
	}
	return frames
}

// settled is what is to be seen once nothing happens any more.
func settled(s *store.Store) *store.Snapshot {
	for v := s.Snapshot(); ; {
		time.Sleep(250 * time.Millisecond)
		next := s.Snapshot()
		if next.Version == v.Version {
			return next
		}
		v = next
	}
}

// drawn is the screen that shows a snapshot, but for its first line: that tells how many frames are drawn a second.
func drawn(t *testing.T, v *store.Snapshot) []string {
	t.Helper()
	const cols, rows = 200, 60
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if err := pty.Setsize(ours, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	p := &program{tty: ours, screen: vt10x.New(vt10x.WithSize(cols, rows)), done: make(chan struct{})}
	go p.readRunes()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- ui.Run(ctx, ui.Config{
			Snapshots: func() *store.Snapshot { return v }, Input: theirs, Output: theirs, Environ: append(os.Environ(), "TERM=xterm-256color"),
		})
	}()
	p.waitFor(t, "llmtop", "quit")
	screen := p.text()
	for still := 0; still < 5; { // frames may come in pieces
		time.Sleep(50 * time.Millisecond)
		if next := p.text(); next != screen {
			screen, still = next, 0
		} else {
			still++
		}
	}
	stop()
	<-ended
	_ = theirs.Close()
	<-p.done
	return strings.Split(screen, "\n")[1:]
}

// readRunes feeds what is drawn to the screen in whole characters: the halves of one that a read has cut in two would be drawn as none.
func (p *program) readRunes() {
	defer close(p.done)
	in := bufio.NewReaderSize(p.tty, 64<<10)
	for {
		r, n, err := in.ReadRune()
		if err != nil {
			return
		}
		p.mu.Lock()
		if n > 1 || r != utf8.RuneError {
			_, _ = p.screen.Write(utf8.AppendRune(nil, r))
		}
		p.mu.Unlock()
	}
}
