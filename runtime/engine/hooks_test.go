package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// TestHooksWhileRunning turns hooks on and off during a request; its tokens do not change.
func TestHooksWhileRunning(t *testing.T) {
	e := newFake(t, 1, 64, 16)
	run(t, e, engine.Options{Pace: 10}, func(t *testing.T, b *bench) {
		h := b.mustSubmit(t, "abc", 9)
		var counted []int
		for _, hooks := range []engine.Hooks{{Split: true, Experts: true}, {}, {Split: true}} {
			time.Sleep(250 * time.Millisecond)
			b.SetHooks(hooks)
			synctest.Wait()
			if e.hooks != hooks {
				t.Errorf("hooks are %+v, want %+v", e.hooks, hooks)
			}
			counted = append(counted, len(b.byKind(event.KindExperts, 0)))
		}
		want(t, h, event.StateFinished, "length", "defghijkl")
		b.checkTokens(t, h)
		var split strings.Builder
		for _, token := range b.byKind(event.KindToken, h.ID) {
			if token.Split.Embed == 0 || token.Split.Head == 0 || token.Split.Sample == 0 {
				t.Errorf("token %d lacks what is always timed: %+v", token.Index, token.Split)
			}
			if token.Split.Attention > 0 && token.Split.Router > 0 && token.Split.Experts > 0 {
				split.WriteByte('x')
			} else {
				split.WriteByte('-')
			}
		}
		// One token each 100 ms, the first soon after 0; the settings change at 250, 500 and 750 ms.
		if got := split.String(); got != "---xx---x" {
			t.Errorf("tokens with layers' times: %s", got)
		}
		if counted[0] != 0 || counted[1] == 0 || counted[2] != counted[1] || len(b.byKind(event.KindExperts, 0)) != counted[2] {
			t.Errorf("experts were reported %v times at the changes, %d in total", counted, len(b.byKind(event.KindExperts, 0)))
		}
	})
}

// TestChangeHooks: hooks that are not changed keep their values.
func TestChangeHooks(t *testing.T) {
	e := newFake(t, 1, 64, 16)
	run(t, e, engine.Options{Pace: 10, Hooks: engine.Hooks{Split: true, Experts: true}}, func(t *testing.T, b *bench) {
		b.mustSubmit(t, "abc", 3)
		b.ChangeHooks(func(h *engine.Hooks) { h.Every = 5 })
		b.ChangeHooks(func(h *engine.Hooks) { h.Split = false })
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if want := (engine.Hooks{Experts: true, Every: 5}); e.hooks != want {
			t.Errorf("hooks are %+v, want %+v", e.hooks, want)
		}
	})
}

// TestLayersOfWholePromptsOnly: if only some batches of a prompt were timed by layer, no times per layer are reported,
// but all other times are.
func TestLayersOfWholePromptsOnly(t *testing.T) {
	for _, on := range []bool{true, false} {
		run(t, newFake(t, 1, 256, 16), engine.Options{Hooks: engine.Hooks{Split: !on}}, func(t *testing.T, b *bench) {
			h := b.mustSubmit(t, strings.Repeat("a", 64), 2)
			time.Sleep(2*16*row + row) // into the third batch of four
			b.SetHooks(engine.Hooks{Split: on})
			<-h.Done()
			var prompt time.Duration
			for _, s := range b.byKind(event.KindStage, h.ID) {
				if s.Layer >= 0 {
					t.Errorf("on %v: layer %d has a time of %v", on, s.Layer, time.Duration(s.Dur))
				}
				if s.Stage == event.StagePrompt {
					prompt = time.Duration(s.Dur)
				}
			}
			if whole := 64 * (row - fakeEmbed); prompt != whole {
				t.Errorf("on %v: the prompt took %v, want %v", on, prompt, whole)
			}
		})
	}
}
