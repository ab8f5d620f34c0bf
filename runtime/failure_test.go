package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// ends checks that each request has ended, once.
func (b *bench) ends(t *testing.T, handles ...*runtime.Handle) {
	t.Helper()
	for _, h := range handles {
		h.Result()
		states := b.of(event.KindRequest, h.ID)
		ends := 0
		for _, e := range states {
			if _, ok := e.Data.(*event.Outcome); ok {
				ends++
			}
		}
		if _, ok := states[len(states)-1].Data.(*event.Outcome); ends != 1 || !ok {
			t.Errorf("request #%d ended %d times: %v", h.ID, ends, states)
		}
	}
	if b.Busy() {
		t.Error("busy after all requests have ended")
	}
}

// TestEngineError fails the requests of the batch and goes on with the next.
func TestEngineError(t *testing.T) {
	e := newFake(t, 2, 64, 16)
	cause := errors.New("a bit flipped")
	e.fail = map[int]error{3: cause}
	run(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
		hit := []*runtime.Handle{b.ask(t, "abc", 9), b.ask(t, "d", 9)}
		next := b.ask(t, "e", 2)
		for _, h := range hit {
			if r := h.Result(); !errors.Is(r.Err, cause) || r.State != event.StateFailed || r.Reason != "a bit flipped" || r.Generated != 2 {
				t.Errorf("request #%d ended %+v", h.ID, r)
			}
		}
		want(t, next, event.StateFinished, "length", "fg")
		b.ends(t, hit[0], hit[1], next)
	})
}

// TestEngineErrorSparesOthers: a request that waits for its turn is not in the batch that fails, and loses nothing.
func TestEngineErrorSparesOthers(t *testing.T) {
	e := newFake(t, 2, 64, 16)
	e.fail = map[int]error{2: errors.New("a bit flipped")}
	run(t, e, runtime.Options{Pace: 40}, func(t *testing.T, b *bench) {
		spared := b.ask(t, "abc", 4)
		time.Sleep(5 * time.Millisecond)
		want(t, b.ask(t, "x", 4), event.StateFailed, "a bit flipped", "")
		want(t, spared, event.StateFinished, "length", "defg")
	})
}

// TestEngineBreaks ends all requests and Run when the engine says that it cannot go on.
func TestEngineBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake(t, 1, 64, 16)
		e.fail = map[int]error{2: fmt.Errorf("out of memory: %w", runtime.ErrBroken)}
		b := start(e, runtime.Options{Clock: runtime.NewClock()}, runtime.Loaded(e))
		running, waiting := b.ask(t, "abc", 9), b.ask(t, "d", 9)
		want(t, running, event.StateFailed, "out of memory: the engine is broken", "d")
		want(t, waiting, event.StateFailed, "out of memory: the engine is broken", "")
		b.broken(t, running, waiting)
	})
}

// TestEngineFallsOver: wherever the engine panics, every request ends, and so does Run, with an error.
func TestEngineFallsOver(t *testing.T) {
	for _, method := range []string{"load", "Encode", "Forward", "Release", "Router"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake(t, 2, 64, 16)
				e.falls, e.closed = method, method == "load" // what was never open needs no closing
				opt := runtime.Options{Clock: runtime.NewClock(), Hooks: runtime.Hooks{Experts: true}}
				b := start(e, opt, func(context.Context, func(runtime.LoadStage)) (runtime.Engine, error) {
					time.Sleep(time.Millisecond) // all requests have been submitted
					e.fall("load")
					return e, nil
				})
				handles := []*runtime.Handle{b.ask(t, "abc", 2), b.ask(t, "d", 9), b.ask(t, "e", 9)}
				for _, h := range handles {
					r := h.Result()
					if !errors.Is(r.Err, runtime.ErrBroken) || r.State != event.StateFailed || strings.Contains(r.Reason, "\n") {
						t.Errorf("request #%d ended %+v", h.ID, r)
					}
				}
				b.broken(t, handles...)
			})
		})
	}
}

// broken checks how a session ends whose engine cannot go on.
func (b *bench) broken(t *testing.T, handles ...*runtime.Handle) {
	t.Helper()
	if err := b.stop(); !errors.Is(err, runtime.ErrBroken) {
		t.Errorf("Run: %v", err)
	}
	b.ends(t, handles...)
	if !b.engine.closed {
		t.Error("the engine was not closed")
	}
	states := b.of(event.KindEngine, 0)
	if last := states[len(states)-1].Data.(*event.Engine); last.State != event.EngineFailed || last.Reason == "" {
		t.Errorf("engine is %v: %q", last.State, last.Reason)
	}
	if _, err := b.Submit(runtime.Request{Text: "a"}); !errors.Is(err, runtime.ErrStopped) || !errors.Is(err, runtime.ErrBroken) {
		t.Errorf("Submit to a broken engine: %v", err)
	}
}

// TestCloseFails reports what went wrong after the last request.
func TestCloseFails(t *testing.T) {
	stuck := errors.New("the file is stuck")
	for _, c := range []struct {
		falls  string
		sticks error
		want   error
	}{{"", stuck, stuck}, {"Close", nil, runtime.ErrBroken}} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake(t, 1, 64, 16)
			e.falls, e.sticks = c.falls, c.sticks
			b := start(e, runtime.Options{}, runtime.Loaded(e))
			h := b.ask(t, "abc", 2)
			want(t, h, event.StateFinished, "length", "de")
			if err := b.stop(); !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "close engine: ") {
				t.Errorf("Run: %v, want %v", err, c.want)
			}
			b.ends(t, h)
		})
	}
}

// TestReleaseFailsAtTheEnd: an engine that falls over while the session ends does not keep requests from ending.
func TestReleaseFailsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake(t, 2, 64, 16)
		e.falls = "Release"
		b := start(e, runtime.Options{Pace: 1}, runtime.Loaded(e))
		handles := []*runtime.Handle{b.ask(t, "abc", 9), b.ask(t, "d", 9), b.ask(t, "e", 9)}
		time.Sleep(time.Second)
		if err := b.stop(); !errors.Is(err, runtime.ErrBroken) {
			t.Errorf("Run: %v", err)
		}
		for _, h := range handles {
			if r := h.Result(); r.State != event.StateCancelled {
				t.Errorf("request #%d ended %+v", h.ID, r)
			}
		}
		b.ends(t, handles...)
	})
}
