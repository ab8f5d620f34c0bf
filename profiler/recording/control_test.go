package recording

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// collector is a sink that keeps events and when they arrived.
type collector struct {
	mu     sync.Mutex
	events []event.Event
	when   []time.Time
}

func (h *collector) Emit(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events, h.when = append(h.events, e), append(h.when, time.Now())
}

func (h *collector) tokens() (index []int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == event.KindToken {
			index = append(index, e.Index)
		}
	}
	return index
}

// ticking records a request with n tokens, one event per millisecond from 1 ms on.
func ticking(t testing.TB, n int) string {
	t.Helper()
	tp := record(t, RecordOptions{Flush: time.Hour})
	tp.now.Store(0)
	tp.emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: 1, State: event.StateQueued, Data: &event.Request{}})
	tp.token(1, n)
	tp.emit(event.Event{Kind: event.KindLog, Layer: -1, Text: "end"})
	tp.end(t)
	return tp.path
}

// player plays a recording into a sink in a synctest bubble.
func player(t testing.TB, path string, opt PlayOptions) (p *Player, h *collector, ended <-chan error) {
	t.Helper()
	rec, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = NewPlayer(rec, opt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h = &collector{}
	done := make(chan error, 1)
	over := make(chan struct{})
	go func() { done <- p.Run(ctx, h); close(over) }()
	t.Cleanup(func() { cancel(); <-over; _ = rec.Close() })
	synctest.Wait()
	return p, h, done
}

func TestReplaySpeed(t *testing.T) {
	n := 3000 / eventtest.Step(5)
	path := ticking(t, n)
	for _, speed := range []float64{Slowest, 1, 7, Fastest} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_, h, ended := player(t, path, PlayOptions{Speed: speed, StopAtEnd: true})
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if len(h.events) != n+2 {
				t.Fatalf("%d events, want %d", len(h.events), n+2)
			}
			for i, e := range h.events {
				due := time.Duration(float64(e.At-ms) / speed)
				if late := h.when[i].Sub(begin) - due; late < -time.Microsecond || late > nap+time.Microsecond {
					t.Fatalf("at %vx, event %d comes %v late", speed, i, late)
				}
			}
		})
	}
}

func TestUnpacedTakesNoTime(t *testing.T) {
	path := ticking(t, 3*burst)
	synctest.Test(t, func(t *testing.T) {
		begin, drained := time.Now(), 0
		p, h, ended := player(t, path, PlayOptions{Speed: Unpaced, StopAtEnd: true, Drain: func() { drained++ }})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 0 || len(h.events) != 3*burst+2 || drained != 4 {
			t.Errorf("%d events in %v, drained %d times", len(h.events), took, drained)
		}
		if s := p.Status(); s.State != Ended || s.Now != p.rec.End {
			t.Errorf("at the end: %+v", s)
		}
	})
}

func TestPauseStopsTheClock(t *testing.T) {
	path := ticking(t, 1000)
	synctest.Test(t, func(t *testing.T) {
		p, h, _ := player(t, path, PlayOptions{})
		time.Sleep(100*time.Millisecond + time.Microsecond)
		p.Pause()
		at, n := p.Now(), len(h.tokens())
		if want := 101*ms + event.Time(time.Microsecond); at != want || n != 100 {
			t.Errorf("paused at %v after %d tokens, want %v", at, n, want)
		}
		time.Sleep(time.Hour)
		if now := p.Now(); now != at || len(h.tokens()) != n || p.Status().State != Paused {
			t.Errorf("after an hour of pause: %v, %d tokens, %v", now, len(h.tokens()), p.Status().State)
		}
		if err := p.SetSpeed(2); err != nil {
			t.Fatal(err)
		}
		p.Play()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if now := p.Now(); now != at+200*ms {
			t.Errorf("100 ms later at 2x it is %v, want %v", now, at+200*ms)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := p.Status(); s.State != Ended || s.Now != s.End {
			t.Errorf("at the end: %+v", s)
		}
	})
}

func TestStep(t *testing.T) {
	path, _ := live(t, 100, RecordOptions{})
	synctest.Test(t, func(t *testing.T) {
		p, h, _ := player(t, path, PlayOptions{Paused: true})
		for n := 1; n <= 5; n++ {
			p.Step(StepEvent)
			synctest.Wait()
			if len(h.events) != n {
				t.Fatalf("%d events after %d steps", len(h.events), n)
			}
		}
		for n := 1; n <= 5; n++ {
			p.Step(StepToken)
			synctest.Wait()
			if last := h.events[len(h.events)-1]; len(h.tokens()) != n || last.Kind != event.KindToken || p.Now() < last.At {
				t.Fatalf("%d tokens after %d steps, last event %v", len(h.tokens()), n, last.Kind)
			}
		}
		for range 10000 {
			p.Step(StepToken)
			synctest.Wait()
			if p.Status().State == Ended {
				return
			}
		}
		t.Error("steps do not reach the end")
	})
}

func TestSeekBackStartsOver(t *testing.T) {
	path, frames := live(t, 600, RecordOptions{})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{Paused: true})
		defer r.stop()
		for _, i := range []int{len(frames) - 1, 3, 17, 2} {
			if err := r.SeekTime(frames[i].Now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got := r.store.Snapshot()
			// Verdicts stay for a while, so they depend on the frames before.
			want := *frames[i]
			want.Verdicts, got.Verdicts = nil, nil
			same(t, fmt.Sprint("frame ", i), &want, got)
		}
		if r.fresh != 3 {
			t.Errorf("%d stores, want 3", r.fresh)
		}
	})
}

func TestSeekByRequest(t *testing.T) {
	path, _ := live(t, 600, RecordOptions{SegmentBytes: 1 << 12, Segments: 1000})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{Paused: true})
		defer r.stop()
		for _, id := range []event.RequestID{9, 2, 12} {
			if err := r.SeekRequest("", id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if q := r.store.Snapshot().Requests; len(q) == 0 || q[0].ID != id || q[0].Generated != 0 {
				t.Errorf("the newest request is not %d at its start", id)
			}
		}
		if err := r.SeekRequest("", 1<<40); err == nil || err.Error() != "find request 1099511627776: it is not in the recording" {
			t.Errorf("missing request: %v", err)
		}
	})
}

func TestSeekWhilePlayingContinuesFromThere(t *testing.T) {
	path := ticking(t, 5000)
	synctest.Test(t, func(t *testing.T) {
		p, h, _ := player(t, path, PlayOptions{Speed: 10})
		if err := p.SeekTime(4000 * ms); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := p.Status(); s.Now != 4000*ms || s.State != Playing || len(h.tokens()) != 3999 {
			t.Errorf("after the seek: %+v, %d tokens", s, len(h.tokens()))
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if now := p.Now(); now != 4500*ms {
			t.Errorf("50 ms later at 10x: %v", now)
		}
		if err := p.SeekTime(ms); err == nil {
			t.Error("sought back without a fresh sink")
		}
		if want := slices.IsSorted(h.tokens()); !want {
			t.Error("tokens are out of order")
		}
	})
}

func TestSpeedsOutOfRangeAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := player(t, ticking(t, 3), PlayOptions{Paused: true})
		for _, x := range []float64{0, -1, .09, 1001, math.NaN(), math.Inf(-1)} {
			if err := p.SetSpeed(x); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("speed %v: %v", x, err)
			}
		}
	})
}

func TestSegmentsReplayAsLive(t *testing.T) {
	path, frames := live(t, 2000, RecordOptions{SegmentBytes: 1 << 12, Segments: 1000})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{Paused: true, Rebuild: 1})
		defer r.stop()
		if r.rec.Segments < 4 {
			t.Fatalf("%d segments", r.rec.Segments)
		}
		for i := 0; i < len(frames); i += 4 {
			if err := r.SeekTime(frames[i].Now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			same(t, "frame", frames[i], r.store.Snapshot())
		}
		// Seek back: the state of the last segment is the start, and TotalsSince reports it.
		i := len(frames) - 2
		for frames[i].Counts.Running < 2 {
			i--
		}
		if err := r.SeekTime(frames[i].Now); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got, s := r.store.Snapshot(), r.Status()
		if s.TotalsSince <= s.Begin || got.Counts.Running != frames[i].Counts.Running || got.Engine.Name != "native" || got.KV.Used != frames[i].KV.Used {
			t.Errorf("rebuilt from %v: %d running, engine %q", s.TotalsSince, got.Counts.Running, got.Engine.Name)
		}
	})
}

func TestMissingSegmentsStartOver(t *testing.T) {
	tp, _ := rotated(t, 6, 2)
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, tp.path, PlayOptions{Speed: Unpaced})
		defer r.stop()
		v := r.store.Snapshot()
		if s := r.Status(); r.fresh != 2 || s.TotalsSince <= s.Begin || s.MissingSegments == 0 || v.Engine.Name != "native" {
			t.Errorf("%d stores, status %+v", r.fresh, s)
		}
	})
}
