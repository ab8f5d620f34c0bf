package runtime_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// keeperEngine is a fakeEngine that can cut what a slot holds, down to no fewer than least tokens.
type keeperEngine struct {
	*fakeEngine
	least int
	cuts  [][2]int // slot and tokens asked for
}

func (e *keeperEngine) Keep(slot, n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cuts = append(e.cuts, [2]int{slot, n})
	if n > e.filled[slot] {
		e.t.Errorf("slot %d is to keep %d tokens, holds %d", slot, n, e.filled[slot])
	}
	if n < e.least {
		n = 0
	}
	e.filled[slot] = n
	return n
}

// runKeeper is run for an engine that keeps.
func runKeeper(t *testing.T, e *keeperEngine, opt runtime.Options, body func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e.t = t
		opt.Clock, opt.Reuse = runtime.NewClock(), true
		b := start(e.fakeEngine, opt, runtime.Loaded(e))
		synctest.Wait()
		body(t, b)
		if err := b.stop(); err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func newKeeper(t *testing.T, slots int) *keeperEngine {
	return &keeperEngine{fakeEngine: newFake(t, slots, 64, 32)}
}

// TestConversationGoesOn: the second prompt repeats the first with its answer, and only what is new is computed.
func TestConversationGoesOn(t *testing.T) {
	e := newKeeper(t, 1)
	runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
		want(t, b.ask(t, "abc", 3), event.StateFinished, "length", "def")
		h := b.ask(t, "abcdef, and", 2)
		want(t, h, event.StateFinished, "length", "ef")
		if r := h.Result(); r.Prompt != 11 || r.Cached != 5 { // the last token of the answer was never computed
			t.Errorf("prompt of %d tokens, %d cached, want 11 and 5", r.Prompt, r.Cached)
		}
		for _, s := range b.of(event.KindStage, h.ID) {
			if s.Stage == event.StagePrompt && s.N != 6 || s.Text != "" && (s.Text != "cache_lookup" || s.N != 5) {
				t.Errorf("stage %v %q covers %d tokens", s.Stage, s.Text, s.N)
			}
		}
	})
	if got := shapes(e.batches); got != "s0:p3*\ns0:d1\ns0:d1\ns0:p6*\ns0:d1" {
		t.Errorf("batches\n%s", got)
	}
}

// TestKeptCellsCount: cells that are gone on from are in use by their request, cached ones included; those that merely lie there are not.
func TestKeptCellsCount(t *testing.T) {
	e := newKeeper(t, 1)
	runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
		b.ask(t, "abcdefgh", 1).Result()
		b.ask(t, "abcdefghijkl", 1).Result()
		var freed []int64
		for _, kv := range b.of(event.KindKV, 0) {
			if p := kv.Data.(*event.KV); p.Freed > 0 {
				freed = append(freed, p.Freed)
				if p.Used != 0 {
					t.Errorf("%d cells are in use without a request", p.Used)
				}
			}
		}
		if !slices.Equal(freed, []int64{8, 12}) {
			t.Errorf("cells freed: %v, want 8 and 12", freed)
		}
	})
}

// TestPromptIsNeverAllCached: the same prompt again is computed from its last token on.
func TestPromptIsNeverAllCached(t *testing.T) {
	e := newKeeper(t, 1)
	runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
		want(t, b.ask(t, "abcd", 1), event.StateFinished, "length", "e")
		h := b.ask(t, "abcd", 2)
		want(t, h, event.StateFinished, "length", "ef")
		if n := h.Result().Cached; n != 3 {
			t.Errorf("%d tokens cached, want 3", n)
		}
	})
}

// TestSlotForAPrompt: the slot whose sequence goes on is taken, then an empty one, then the one left the longest ago.
func TestSlotForAPrompt(t *testing.T) {
	e := newKeeper(t, 3)
	runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
		for i, step := range []struct {
			prompt string
			slot   int32
			cached int
		}{
			{"s: first", 0, 0},
			{"s: second, which is longer", 1, 0}, // three tokens in common are no reason to give up the first
			{"s: first goes on", 0, 8},
			{"other", 2, 0},
			{"s: third, about something else", 1, 3}, // all slots hold something: 1 was left first, and shares a little
			{"other things", 2, 5},
			{"new", 0, 0},
		} {
			h := b.ask(t, step.prompt, 1)
			cached := h.Result().Cached
			rows := e.batches[len(e.batches)-1]
			if rows[0].Slot != step.slot || cached != step.cached {
				t.Errorf("step %d, %q: slot %d with %d tokens cached, want slot %d with %d", i, step.prompt, rows[0].Slot, cached, step.slot, step.cached)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// TestNotReused: nothing is gone on from that a request does not want, that the engine cannot cut, or that a failure left behind.
func TestNotReused(t *testing.T) {
	long := strings.Repeat("abc", 8)
	t.Run("fresh", func(t *testing.T) {
		runKeeper(t, newKeeper(t, 1), runtime.Options{}, func(t *testing.T, b *bench) {
			b.ask(t, long, 1).Result()
			h, err := b.Submit(runtime.Request{Text: long, MaxTokens: 1, Fresh: true})
			if err != nil {
				t.Fatal(err)
			}
			if n := h.Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
		})
	})
	t.Run("uncuttable", func(t *testing.T) {
		e := newKeeper(t, 1)
		e.least = 24
		runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
			b.ask(t, long, 1).Result()
			if n := b.ask(t, long, 1).Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
			if n := b.ask(t, long+"d", 1).Result().Cached; n != 24 {
				t.Errorf("%d tokens cached of a sequence that goes on whole, want 24", n)
			}
		})
	})
	t.Run("failed", func(t *testing.T) {
		e := newKeeper(t, 1)
		e.fail = map[int]error{2: errors.New("too hot")}
		runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
			want(t, b.ask(t, long, 5), event.StateFailed, "too hot", "d")
			if n := b.ask(t, long, 1).Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
		})
		if len(e.released) != 1 {
			t.Errorf("slots released: %v, want one after the failure", e.released)
		}
	})
	t.Run("off", func(t *testing.T) {
		e := newKeeper(t, 1)
		run(t, e.fakeEngine, runtime.Options{Reuse: true}, func(t *testing.T, b *bench) { // which is no Keeper
			b.ask(t, long, 1).Result()
			if n := b.ask(t, long, 1).Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
		})
	})
}

// TestCancelledPromptIsReused: what was computed of a prompt before it was cancelled need not be computed again.
func TestCancelledPromptIsReused(t *testing.T) {
	e := newKeeper(t, 1)
	long := strings.Repeat("k", 60)
	runKeeper(t, e, runtime.Options{}, func(t *testing.T, b *bench) {
		h := b.ask(t, long, 1)
		time.Sleep(time.Microsecond)
		h.Cancel() // during the first batch of 32
		want(t, h, event.StateCancelled, "cancelled", "")
		if n := b.ask(t, long, 1).Result().Cached; n != 32 {
			t.Errorf("%d tokens cached, want the first batch", n)
		}
	})
}
