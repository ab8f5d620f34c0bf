package native_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// TestSameSeedSameText samples a text with several numbers of threads, one of them larger than the number of CPUs.
func TestSameSeedSameText(t *testing.T) {
	generate := func(threads int, seed uint64) (ids []int32) {
		e := openDemo(t, native.Options{Context: 128, Threads: threads})
		ids = e.Encode(nil, "And it came to pass", false)
		sampler := native.NewSampler(engine.Params{Temperature: 1, TopK: 40, TopP: 0.95, RepeatPenalty: 1.1, Seed: seed}, e.Model().Vocab)
		for done := 0; len(ids) < 60; {
			s := sequence{tokens: ids, pos: done}
			b := engine.Batch{Rows: s.next(len(ids)-done, done == 0, false)}
			if err := e.Forward(&b); err != nil {
				t.Fatal(err)
			}
			done = len(ids)
			id, _ := sampler.Sample(b.Logits[0], ids)
			ids = append(ids, id)
		}
		return ids
	}
	want := generate(1, 3)
	for _, threads := range []int{2, 3, 5} {
		if got := generate(threads, 3); !slices.Equal(got, want) {
			t.Errorf("%d threads: %v\none: %v", threads, got, want)
		}
	}
	if slices.Equal(generate(1, 4), want) {
		t.Error("another seed draws the same text")
	}
}

// TestFullContext fills a context to its last position, in one batch and token by token, then reuses the slot for a new
// text.
func TestFullContext(t *testing.T) {
	const context = 50
	tokens := text(3, context, 4096)
	want := alone(t, openDemoPicks, tokens)
	e := openDemoPicks(t, native.Options{Context: context, Threads: 2})
	for _, chunk := range []int{context, 1} {
		s := &sequence{tokens: tokens}
		for s.pos < context {
			forward(t, e, s.next(chunk, true, true), s)
		}
		same(t, "full context", s, want)
	}
	b := engine.Batch{Rows: []engine.Row{{Token: 1, Pos: context, Logits: true}}}
	if err := e.Forward(&b); err == nil || !strings.Contains(err.Error(), "row 0 has token 1 at position 50 of slot 0: out of range") {
		t.Errorf("a position behind the context: %v", err)
	}
	e.Release(0)
	s := &sequence{tokens: tokens}
	forward(t, e, s.next(20, true, true), s)
	same(t, "a new text in the slot", s, want)
}

// TestForwardRefuses checks the validation of batches.
func TestForwardRefuses(t *testing.T) {
	e := openDemo(t, native.Options{Context: 16, Slots: 2, MaxBatch: 3})
	for want, rows := range map[string][]engine.Row{
		"0 rows, must be 1 to 3":                           {},
		"4 rows, must be 1 to 3":                           make([]engine.Row, 4),
		"row 0 has token 4096 at position 0 of slot 0":     {{Token: 4096}},
		"row 0 has token -1 at position 0 of slot 0":       {{Token: -1}},
		"row 1 has token 0 at position -1 of slot 0":       {{}, {Pos: -1}},
		"row 0 has token 0 at position 0 of slot 2: out":   {{Slot: 2}},
		"row 0 has token 0 at position 0 of slot -1: out":  {{Slot: -1}},
		"row 0 has token 0 at position 16 of slot 1: out ": {{Slot: 1, Pos: 16}},
	} {
		if err := e.Forward(&engine.Batch{Rows: rows}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	b := engine.Batch{Rows: []engine.Row{{Token: 5, Logits: true}}}
	if err := e.Forward(&b); err != nil || len(b.Logits) != 1 {
		t.Errorf("a batch after those: %v", err)
	}
}

// TestRouterCounts compares the counted picks with those of Batch.Picks, separately for prompt and decode.
func TestRouterCounts(t *testing.T) {
	e := openDemo(t, native.Options{Context: 64, Threads: 2})
	warm := e.Router()
	e.SetHooks(engine.Hooks{Experts: true, Picks: true})
	s := &sequence{tokens: text(5, 40, 4096)}
	forward(t, e, s.next(30, true, false), s)
	for s.pos < 40 {
		forward(t, e, s.next(1, false, true), s)
	}
	got := e.Router()
	if warm.PromptTokens+warm.DecodeTokens != 0 || got.PromptTokens != 30 || got.DecodeTokens != 10 {
		t.Errorf("%d and %d tokens after the warm-up, then %d of a prompt and %d decoded", warm.PromptTokens, warm.DecodeTokens, got.PromptTokens, got.DecodeTokens)
	}
	prompt, decode := make([]uint64, len(got.Prompt)), make([]uint64, len(got.Decode))
	for pos, picks := range s.picks {
		to := prompt
		if pos >= 30 {
			to = decode
		}
		for i, e := range picks {
			to[i/got.Used*got.Experts+int(e)]++
		}
	}
	if !slices.Equal(prompt, got.Prompt) || !slices.Equal(decode, got.Decode) {
		t.Errorf("counted %v and %v\nBatch.Picks has %v and %v", got.Prompt, got.Decode, prompt, decode)
	}
	e.SetHooks(engine.Hooks{})
	forward(t, e, (&sequence{tokens: s.tokens}).next(1, true, true), &sequence{tokens: s.tokens})
	if after := e.Router(); !slices.Equal(after.Prompt, got.Prompt) || after.PromptTokens != 30 {
		t.Error("picks are counted with the hooks off")
	}
	if dense := shapes(0)[0].open(t, native.Options{Context: 16, Threads: 1}).Router(); dense != nil {
		t.Errorf("a dense model has picks: %+v", dense)
	}
}
