//go:build unix

package program_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/store/storetest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/ui"
)

// TestReplayedFramesEqualLiveOnes watches and records the built-in engine, and checks at quiet moments that a replay
// draws the same frame, cell by cell.
func TestReplayedFramesEqualLiveOnes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "session.llmtop")
	live := recorded(t, file)
	rec, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var s *store.Store
	var player *recording.Player
	fresh := func() event.Sink {
		s = store.New(store.Options{Now: player.Now, Wall: player.Wall})
		return s
	}
	player, err = recording.NewPlayer(rec, recording.PlayOptions{
		Paused: true, Reset: fresh, Drain: func() { s.Snapshot() },
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
		for player.Status().State == recording.Seeking {
			time.Sleep(time.Millisecond)
		}
		got := *s.Snapshot()
		want := *want
		want.Wall = rec.Wall(want.Now)         // the clock was read twice
		want.Verdicts, got.Verdicts = nil, nil // they stay for a while, and so depend on earlier frames
		if diff := storetest.Diff(&want, &got); diff != "" {
			t.Fatalf("moment %d (-live +replayed):\n%s", i, diff)
		}
		if diff := cmp.Diff(drawn(t, &want), drawn(t, &got)); diff != "" {
			t.Errorf("moment %d is drawn differently (-live +replayed):\n%s", i, diff)
		}
	}
}

// recorded generates a few texts with the built-in engine, and returns the snapshot after each.
func recorded(t *testing.T, file string) (frames []*store.Snapshot) {
	t.Helper()
	clock := engine.NewClock()
	s := store.New(store.Options{Now: clock.Now, Wall: func() time.Time { return time.Unix(0, clock.Epoch()+int64(clock.Now())) }})
	recorder, err := recording.Record(file, recording.RecordOptions{Now: clock.Now, Epoch: clock.Epoch(), Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	load := func(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
		return native.OpenDemo(native.Options{Threads: 1, Report: report})
	}
	scheduler := engine.New(load, engine.Options{Clock: clock, Sampler: native.NewSampler, Hooks: engine.Hooks{Split: true, Experts: true}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- scheduler.Run(ctx, event.Tee{s, recorder}) }()
	for i, prompt := range []string{"Call me Ishmael.", "And it came to pass", "whale (noun):"} {
		h, err := scheduler.Submit(engine.Request{
			Text: prompt, MaxTokens: 60 + 40*i, IgnoreEOS: true, Params: engine.Params{Seed: 7}, SendText: true, TopLogprobs: 2, Picks: i == 1, Group: prompt[:3],
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
	if lost := recorder.Status().Dropped; lost != (event.Drops{}) {
		t.Fatalf("the recording misses %v", lost)
	}
	return frames
}

// settled returns the snapshot once nothing changes any more.
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

// drawn returns the screen that shows a snapshot, without its first line, which has the frame rate.
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
			Sessions: ui.One(ui.Session{Snapshots: func() *store.Snapshot { return v }}), Input: theirs, Output: theirs, Environ: append(os.Environ(), "TERM=xterm-256color"),
		})
	}()
	p.waitFor(t, "llmtop", "quit")
	screen := p.text()
	for still := 0; still < 5; { // frames may arrive in pieces
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

// readRunes feeds the output to the screen in whole characters: a split one would be lost.
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
