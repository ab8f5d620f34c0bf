package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// ends checks that each request has ended exactly once.
func (b *bench) ends(t *testing.T, handles ...*engine.Handle) {
	t.Helper()
	for _, h := range handles {
		h.Result()
		states := b.byKind(event.KindRequest, h.ID)
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

// TestEngineError: an error fails the requests of the batch; the next batch runs.
func TestEngineError(t *testing.T) {
	e := newFake(t, 2, 64, 16)
	cause := errors.New("bit flipped")
	e.fail = map[int]error{3: cause}
	run(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		hit := []*engine.Handle{b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "d", 9)}
		next := b.mustSubmit(t, "e", 2)
		for _, h := range hit {
			if r := h.Result(); !errors.Is(r.Err, cause) || r.State != event.StateFailed || r.Reason != "bit flipped" || r.Generated != 2 {
				t.Errorf("request #%d ended %+v", h.ID, r)
			}
		}
		want(t, next, event.StateFinished, "length", "fg")
		b.ends(t, hit[0], hit[1], next)
	})
}

// TestEngineErrorKeepsOthers: a paced request that is not in the failing batch is not affected.
func TestEngineErrorKeepsOthers(t *testing.T) {
	e := newFake(t, 2, 64, 16)
	e.fail = map[int]error{2: errors.New("bit flipped")}
	run(t, e, engine.Options{Pace: 40}, func(t *testing.T, b *bench) {
		spared := b.mustSubmit(t, "abc", 4)
		time.Sleep(5 * time.Millisecond)
		want(t, b.mustSubmit(t, "x", 4), event.StateFailed, "bit flipped", "")
		want(t, spared, event.StateFinished, "length", "defg")
	})
}

// TestEngineBreaks: all requests and Run end when the engine is broken.
func TestEngineBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake(t, 1, 64, 16)
		e.fail = map[int]error{2: fmt.Errorf("out of memory: %w", engine.ErrBroken)}
		b := start(e, engine.Options{Clock: engine.NewClock()}, loaded(e))
		running, waiting := b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "d", 9)
		want(t, running, event.StateFailed, "out of memory: the engine is broken", "d")
		want(t, waiting, event.StateFailed, "out of memory: the engine is broken", "")
		b.broken(t, running, waiting)
	})
}

// TestEnginePanics: whichever method of the engine panics, every request ends and Run returns an error.
func TestEnginePanics(t *testing.T) {
	for _, method := range []string{"load", "Encode", "Forward", "Release", "Router"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake(t, 2, 64, 16)
				e.panicIn, e.closed = method, method == "load" // an engine that was never opened needs no Close
				opt := engine.Options{Clock: engine.NewClock(), Hooks: engine.Hooks{Experts: true}}
				b := start(e, opt, func(context.Context, func(engine.LoadStage)) (engine.Engine, error) {
					time.Sleep(time.Millisecond) // until all requests have been submitted
					e.fall("load")
					return e, nil
				})
				handles := []*engine.Handle{b.mustSubmit(t, "abc", 2), b.mustSubmit(t, "d", 9), b.mustSubmit(t, "e", 9)}
				for _, h := range handles {
					r := h.Result()
					if !errors.Is(r.Err, engine.ErrBroken) || r.State != event.StateFailed || strings.Contains(r.Reason, "\n") {
						t.Errorf("request #%d ended %+v", h.ID, r)
					}
				}
				b.broken(t, handles...)
			})
		})
	}
}

// broken checks how a session ends whose engine is broken.
func (b *bench) broken(t *testing.T, handles ...*engine.Handle) {
	t.Helper()
	if err := b.stop(); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("Run: %v", err)
	}
	b.ends(t, handles...)
	if !b.engine.closed {
		t.Error("the engine was not closed")
	}
	states := b.byKind(event.KindEngine, 0)
	if last := states[len(states)-1].Data.(*event.EngineInfo); last.State != event.EngineFailed || last.Reason == "" {
		t.Errorf("engine is %v: %q", last.State, last.Reason)
	}
	if _, err := b.Submit(engine.Request{Text: "a"}); !errors.Is(err, engine.ErrStopped) || !errors.Is(err, engine.ErrBroken) {
		t.Errorf("Submit to a broken engine: %v", err)
	}
}

// TestCloseFails: an error of Close is returned after the last request.
func TestCloseFails(t *testing.T) {
	stuck := errors.New("the file is stuck")
	for _, c := range []struct {
		falls  string
		sticks error
		want   error
	}{{"", stuck, stuck}, {"Close", nil, engine.ErrBroken}} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake(t, 1, 64, 16)
			e.panicIn, e.closeErr = c.falls, c.sticks
			b := start(e, engine.Options{}, loaded(e))
			h := b.mustSubmit(t, "abc", 2)
			want(t, h, event.StateFinished, "length", "de")
			if err := b.stop(); !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "close engine: ") {
				t.Errorf("Run: %v, want %v", err, c.want)
			}
			b.ends(t, h)
		})
	}
}

// TestReleaseFailsAtTheEnd: requests end even if the engine panics while the session ends.
func TestReleaseFailsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake(t, 2, 64, 16)
		e.panicIn = "Release"
		b := start(e, engine.Options{Pace: 1}, loaded(e))
		handles := []*engine.Handle{b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "d", 9), b.mustSubmit(t, "e", 9)}
		time.Sleep(time.Second)
		if err := b.stop(); !errors.Is(err, engine.ErrBroken) {
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
