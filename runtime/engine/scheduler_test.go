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

func TestRequestsRunInOrder(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		first, second := b.mustSubmit(t, "abc", 4), b.mustSubmit(t, "x", 0)
		want(t, first, event.StateFinished, "length", "defg")
		want(t, second, event.StateFinished, "stop", "yz")
		r := second.Result()
		if r.Prompt != 1 || r.Generated != 3 || len(r.IDs) != 3 {
			t.Errorf("%d prompt and %d generated tokens, %d ids, want 1, 3, 3", r.Prompt, r.Generated, len(r.IDs))
		}
		if got := b.byKind(event.KindRequest, first.ID); len(got) != 3 || got[2].State != event.StateFinished {
			t.Errorf("first request has states %v", got)
		}
		dispatched := b.byKind(event.KindRequest, second.ID)[1]
		if ended := b.byKind(event.KindRequest, first.ID)[2]; dispatched.At < ended.At {
			t.Errorf("second request was dispatched at %d, before the first ended at %d", dispatched.At, ended.At)
		}
	})
}

func TestSubmitRefuses(t *testing.T) {
	opt := engine.Options{Queue: 2}
	run(t, newFake(t, 1, 8, 16), opt, func(t *testing.T, b *bench) {
		for _, r := range []engine.Request{{}, {Text: "a", MaxTokens: -1}, {Text: "a", TopLogprobs: -1}} {
			if h, err := b.Submit(r); err == nil {
				t.Errorf("%+v was accepted as #%d", r, h.ID)
			}
		}
		if _, err := b.Submit(engine.Request{}); !errors.Is(err, engine.ErrEmptyPrompt) {
			t.Errorf("empty prompt: %v", err)
		}
		running := b.mustSubmit(t, "abcd", 3)
		synctest.Wait()
		waiting := []*engine.Handle{b.mustSubmit(t, "a", 1), b.mustSubmit(t, "b", 1)}
		if _, err := b.Submit(engine.Request{Text: "c"}); !errors.Is(err, engine.ErrQueueFull) {
			t.Errorf("third waiting request: %v, want %v", err, engine.ErrQueueFull)
		}
		want(t, running, event.StateFinished, "length", "efg")
		want(t, waiting[1], event.StateFinished, "length", "c")
	})
}

// TestPromptThatDoesNotFit fails without affecting other requests.
func TestPromptThatDoesNotFit(t *testing.T) {
	run(t, newFake(t, 1, 8, 16), engine.Options{}, func(t *testing.T, b *bench) {
		long := b.mustSubmit(t, "abcdefghi", 1)
		odd, err := b.Submit(engine.Request{IDs: []int32{1, fakeVocab}})
		if err != nil {
			t.Fatal(err)
		}
		negative, err := b.Submit(engine.Request{IDs: []int32{-1}})
		if err != nil {
			t.Fatal(err)
		}
		good := b.mustSubmit(t, "abcdefgh", 0)
		if r := long.Result(); !errors.Is(r.Err, engine.ErrPromptTooLong) || r.State != event.StateFailed || r.Prompt != 9 {
			t.Errorf("prompt of 9 in a context of 8 ended %+v", r)
		}
		for _, h := range []*engine.Handle{odd, negative} {
			if r := h.Result(); !errors.Is(r.Err, engine.ErrUnknownToken) {
				t.Errorf("unknown token ended %+v", r)
			}
		}
		// The context is full after the prompt; one more token, which needs no space in it, is generated.
		want(t, good, event.StateFinished, "length", "i")
	})
}

func TestFullContextEndsWithLength(t *testing.T) {
	run(t, newFake(t, 2, 8, 16), engine.Options{}, func(t *testing.T, b *bench) {
		h, other := b.mustSubmit(t, "abc", 0), b.mustSubmit(t, "x", 0)
		want(t, h, event.StateFinished, "length", "defghi")
		want(t, other, event.StateFinished, "stop", "yz")
		b.checkTokens(t, h)
		b.checkTokens(t, other)
		kv := b.byKind(event.KindKV, 0)
		if last := kv[len(kv)-1].Data.(*event.KV); last.Used != 0 || last.Total != 16 {
			t.Errorf("at the end the KV cache holds %d of %d cells, want 0 of 16", last.Used, last.Total)
		}
	})
}

func TestIgnoreEOS(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		h, err := b.Submit(engine.Request{Text: "y", MaxTokens: 2, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		want(t, h, event.StateFinished, "length", "z<end>")
	})
}

// TestStopEndsEverything ends the session while requests run and wait.
func TestStopEndsEverything(t *testing.T) {
	e := newFake(t, 1, 64, 16)
	run(t, e, engine.Options{Pace: 1}, func(t *testing.T, b *bench) {
		running, waiting := b.mustSubmit(t, "a", 0), b.mustSubmit(t, "b", 0)
		time.Sleep(1500 * time.Millisecond)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		want(t, running, event.StateCancelled, "cancelled", "bc")
		want(t, waiting, event.StateCancelled, "cancelled", "")
		if _, err := b.Submit(engine.Request{Text: "a"}); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("Submit after the end: %v", err)
		}
		states := b.byKind(event.KindEngine, 0)
		if last := states[len(states)-1].Data.(*event.EngineInfo); last.State != event.EngineStopped || !e.closed {
			t.Errorf("engine is %v, closed %v", last.State, e.closed)
		}
		if err := b.Run(context.Background(), event.Tee{}); err == nil {
			t.Error("a second Run succeeded")
		}
	})
}

// TestLoad loads a model while requests wait for it.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake(t, 1, 64, 16)
		opt := engine.Options{Clock: engine.NewClock()}
		b := start(e, opt, func(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
			for _, stage := range []event.Stage{event.StageLoadOpen, event.StageLoadWarmup} {
				began := time.Now()
				time.Sleep(10 * time.Millisecond)
				report(engine.LoadStage{Stage: stage, Start: began, Dur: time.Since(began)})
			}
			return e, nil
		})
		time.Sleep(5 * time.Millisecond)
		cold, also, cancelled := b.mustSubmit(t, "a", 1), b.mustSubmit(t, "b", 1), b.mustSubmit(t, "c", 1)
		cancelled.Cancel()
		<-cancelled.Done()
		if now := b.clock.Now(); now != event.Time(5*time.Millisecond) {
			t.Errorf("cancelling had to wait for the load until %v", time.Duration(now))
		}
		want(t, also, event.StateFinished, "length", "c")
		warm := b.mustSubmit(t, "d", 1)
		want(t, warm, event.StateFinished, "length", "e")
		for h, isCold := range map[*engine.Handle]bool{cold: true, also: false, warm: false} {
			if q := b.byKind(event.KindRequest, h.ID)[0].Data.(*event.Request); q.Cold != isCold {
				t.Errorf("request #%d: cold %v, want %v", h.ID, q.Cold, isCold)
			}
		}
		var load []string
		for _, s := range b.byKind(event.KindStage, 0) {
			if s.Stage == event.StageLoad || s.Stage > event.StageSend && s.Stage <= event.StageLoadWarmup {
				load = append(load, fmt.Sprintf("#%d %v %v", s.Req, s.Stage, time.Duration(s.Dur)))
			}
		}
		wanted := "#0 load_open 10ms, #0 load_warmup 10ms, #0 model_load 20ms, #1 model_load 15ms, #2 model_load 15ms"
		if got := strings.Join(load, ", "); got != wanted {
			t.Errorf("load stages\n%s, want\n%s", got, wanted)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("invalid file")
		b := start(newFake(t, 1, 8, 8), engine.Options{Clock: engine.NewClock()},
			func(context.Context, func(engine.LoadStage)) (engine.Engine, error) {
				time.Sleep(time.Millisecond)
				return nil, broken
			})
		h := b.mustSubmit(t, "a", 1)
		if r := h.Result(); !errors.Is(r.Err, broken) || r.State != event.StateFailed {
			t.Errorf("request ended %+v", r)
		}
		if err := b.stop(); !errors.Is(err, broken) {
			t.Errorf("Run: %v", err)
		}
		states := b.byKind(event.KindEngine, 0)
		if last := states[len(states)-1].Data.(*event.EngineInfo); last.State != event.EngineFailed || !strings.Contains(last.Reason, "invalid file") {
			t.Errorf("engine is %v: %q", last.State, last.Reason)
		}
	})
}
