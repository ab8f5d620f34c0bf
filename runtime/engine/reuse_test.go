package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// keeperEngine is a fakeEngine that can truncate the sequence in a slot, to no fewer than least tokens.
type keeperEngine struct {
	*fakeEngine
	least int
	cuts  [][2]int // slot and requested tokens
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

// runKeeper is like run, for a keeperEngine.
func runKeeper(t *testing.T, e *keeperEngine, opt engine.Options, body func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e.t = t
		opt.Clock, opt.Reuse = engine.NewClock(), true
		b := start(e.fakeEngine, opt, loaded(e))
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

// TestConversationIsReused: the second prompt repeats the first and its answer; only the new tokens are computed.
func TestConversationIsReused(t *testing.T) {
	e := newKeeper(t, 1)
	runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		want(t, b.mustSubmit(t, "abc", 3), event.StateFinished, "length", "def")
		h := b.mustSubmit(t, "abcdef, and", 2)
		want(t, h, event.StateFinished, "length", "ef")
		if r := h.Result(); r.Prompt != 11 || r.Cached != 5 { // the last token of the answer was never computed
			t.Errorf("prompt of %d tokens, %d cached, want 11 and 5", r.Prompt, r.Cached)
		}
		for _, s := range b.byKind(event.KindStage, h.ID) {
			if s.Stage == event.StagePrompt && s.N != 6 || s.Text != "" && (s.Text != "cache_lookup" || s.N != 5) {
				t.Errorf("stage %v %q covers %d tokens", s.Stage, s.Text, s.N)
			}
		}
	})
	if got := shapes(e.batches); got != "s0:p3*\ns0:d1\ns0:d1\ns0:p6*\ns0:d1" {
		t.Errorf("batches\n%s", got)
	}
}

// TestKeptCellsCount: reused cells, including cached ones, count as used by their request; cells of a vacant slot do
// not.
func TestKeptCellsCount(t *testing.T) {
	e := newKeeper(t, 1)
	runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		b.mustSubmit(t, "abcdefgh", 1).Result()
		b.mustSubmit(t, "abcdefghijkl", 1).Result()
		var freed []int64
		for _, kv := range b.byKind(event.KindKV, 0) {
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

// TestWhereReuseEnds: a request says where its prompt stops to be the same as an earlier one, and why.
func TestWhereReuseEnds(t *testing.T) {
	const first = "now 08:15\nlist all\n"
	runKeeper(t, newKeeper(t, 2), engine.Options{}, func(t *testing.T, b *bench) {
		if r := b.mustSubmit(t, first, 2).Result().Reuse; r != (event.Reuse{}) {
			t.Errorf("without an earlier prompt %+v", r)
		}
		for _, c := range []struct {
			prompt string
			want   event.Reuse
		}{
			{first + "and", event.Reuse{With: 1, Common: 19, Bytes: 22}},
			{"now 08:16\nlist all\n", event.Reuse{With: 2, Kind: event.BreakTimestamp, Place: "prompt, line 1", At: 4, Common: 4, Same: 9, Bytes: 19}},
		} {
			h := b.mustSubmit(t, c.prompt, 2)
			if r := h.Result().Reuse; r != c.want {
				t.Errorf("%q: %+v, want %+v", c.prompt, r, c.want)
			}
			ended := b.byKind(event.KindRequest, h.ID)
			if o, ok := ended[len(ended)-1].Data.(*event.Outcome); !ok || o.Reuse != c.want {
				t.Errorf("%q: its event says %+v", c.prompt, ended[len(ended)-1].Data)
			}
		}
	})
}

// TestPromptIsNeverAllCached: when a prompt is repeated, its last token is computed again.
func TestPromptIsNeverAllCached(t *testing.T) {
	e := newKeeper(t, 1)
	runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		want(t, b.mustSubmit(t, "abcd", 1), event.StateFinished, "length", "e")
		h := b.mustSubmit(t, "abcd", 2)
		want(t, h, event.StateFinished, "length", "ef")
		if n := h.Result().Cached; n != 3 {
			t.Errorf("%d tokens cached, want 3", n)
		}
	})
}

// TestSlotForAPrompt: the slot whose sequence is extended is taken, then an empty one, then the one vacated the longest
// ago.
func TestSlotForAPrompt(t *testing.T) {
	e := newKeeper(t, 3)
	runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		for i, step := range []struct {
			prompt string
			slot   int32
			cached int
		}{
			{"s: first", 0, 0},
			{"s: second, which is longer", 1, 0}, // a common prefix of three tokens is not enough to evict the first
			{"s: first goes on", 0, 8},
			{"other", 2, 0},
			{"s: third, about something else", 1, 3}, // all slots are in use: 1 was vacated first and has a short common prefix
			{"other things", 2, 5},
			{"new", 0, 0},
		} {
			h := b.mustSubmit(t, step.prompt, 1)
			cached := h.Result().Cached
			rows := e.batches[len(e.batches)-1]
			if rows[0].Slot != step.slot || cached != step.cached {
				t.Errorf("step %d, %q: slot %d with %d tokens cached, want slot %d with %d", i, step.prompt, rows[0].Slot, cached, step.slot, step.cached)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// TestNotReused: nothing is reused if the request does not want it, the engine cannot truncate it, or the batch failed.
func TestNotReused(t *testing.T) {
	long := strings.Repeat("abc", 8)
	t.Run("fresh", func(t *testing.T) {
		runKeeper(t, newKeeper(t, 1), engine.Options{}, func(t *testing.T, b *bench) {
			b.mustSubmit(t, long, 1).Result()
			h, err := b.Submit(engine.Request{Text: long, MaxTokens: 1, Fresh: true})
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
		runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
			b.mustSubmit(t, long, 1).Result()
			if n := b.mustSubmit(t, long, 1).Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
			if n := b.mustSubmit(t, long+"d", 1).Result().Cached; n != 24 {
				t.Errorf("%d tokens cached of a sequence that goes on whole, want 24", n)
			}
		})
	})
	t.Run("failed", func(t *testing.T) {
		e := newKeeper(t, 1)
		e.fail = map[int]error{2: errors.New("overheated")}
		runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
			want(t, b.mustSubmit(t, long, 5), event.StateFailed, "overheated", "d")
			if n := b.mustSubmit(t, long, 1).Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
		})
		if len(e.released) != 1 {
			t.Errorf("slots released: %v, want one after the failure", e.released)
		}
	})
	t.Run("off", func(t *testing.T) {
		run(t, newFake(t, 1, 64, 32), engine.Options{}, func(t *testing.T, b *bench) {
			b.mustSubmit(t, long, 1).Result()
			if n := b.mustSubmit(t, long, 1).Result().Cached; n != 0 {
				t.Errorf("%d tokens cached", n)
			}
		})
	})
}

// TestCancelledPromptIsReused: the computed part of a cancelled prompt is reused.
func TestCancelledPromptIsReused(t *testing.T) {
	e := newKeeper(t, 1)
	long := strings.Repeat("k", 60)
	runKeeper(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		h := b.mustSubmit(t, long, 1)
		time.Sleep(time.Microsecond)
		h.Cancel() // during the first batch of 32
		want(t, h, event.StateCancelled, "cancelled", "")
		if n := b.mustSubmit(t, long, 1).Result().Cached; n != 32 {
			t.Errorf("%d tokens cached, want the first batch", n)
		}
	})
}
