//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
)

// decode computes a prompt in slot 0, then n single tokens.
func decode(tb testing.TB, e *Engine, prompt, n int, each func(b *engine.Batch)) {
	tb.Helper()
	e.Release(0)
	b := engine.Batch{}
	for i := range prompt {
		b.Rows = append(b.Rows, engine.Row{Token: int32(300 + i), Pos: int32(i), Prompt: true, Logits: i == prompt-1})
	}
	for i := range n + 1 {
		if err := e.Forward(&b); err != nil {
			tb.Fatal(err)
		}
		if each != nil {
			each(&b)
		}
		b.Rows = append(b.Rows[:0], engine.Row{Token: int32(400 + i), Pos: int32(prompt + i), Logits: true})
	}
}

func sum(x []uint64) (n uint64) {
	for _, v := range x {
		n += v
	}
	return n
}

// TestCountsAreSampled samples passes, prompts and decoding separately, and never scales a count.
func TestCountsAreSampled(t *testing.T) {
	e := openDemo(t, Options{Context: 256})
	const prompt, tokens, every = 20, 31, 4
	e.SetHooks(engine.Hooks{Experts: true, Every: every})
	decode(t, e, prompt, tokens, nil)
	x := e.Router()
	if x.EveryN != every || x.PromptTokens != prompt || x.DecodeTokens != (tokens+every-1)/every {
		t.Errorf("1 in %d passes counted: %d prompt and %d decode tokens, want 1 in %d, %d and %d",
			x.EveryN, x.PromptTokens, x.DecodeTokens, every, prompt, (tokens+every-1)/every)
	}
	// All layers see all tokens; the last layer computes only the last token of a prompt.
	used := uint64(x.Used)
	if got, want := sum(x.Prompt), used*(prompt*uint64(x.Layers-1)+1); got != want {
		t.Errorf("%d picks in the prompt, want %d", got, want)
	}
	if got, want := sum(x.Decode), used*x.DecodeTokens*uint64(x.Layers); got != want {
		t.Errorf("%d picks while decoding, want %d", got, want)
	}
	x.Decode[0] = 1 << 40
	if e.Router().Decode[0] == 1<<40 {
		t.Error("the counts are not a copy")
	}
	e.SetHooks(engine.Hooks{})
	decode(t, e, prompt, tokens, nil)
	if got := e.Router(); got.PromptTokens != prompt {
		t.Errorf("%d prompt tokens counted with hooks off", got.PromptTokens-prompt)
	}
}

// TestCountsMatchPicks compares the counts with the picks of each position.
func TestCountsMatchPicks(t *testing.T) {
	e := openDemo(t, Options{Context: 1024, Logits: DefaultBatch})
	e.SetHooks(engine.Hooks{Experts: true, Picks: true, Every: 1})
	tokens, m := readGolden(t).Texts[0].Tokens, e.Model()
	want := make([]uint64, m.Layers*m.Experts)
	compute(t, e, tokens, len(tokens), func(_ int, _ []float32, chosen []uint16) {
		for i, expert := range chosen {
			want[i/m.ExpertsUsed*m.Experts+int(expert)]++
		}
	})
	if got := e.Router(); !slices.Equal(got.Prompt, want) || sum(got.Decode) != 0 {
		t.Errorf("picks\n%v, want\n%v", got.Prompt, want)
	}
}

// TestPicksOfLastLayer: a row without logits has no picks in the last layer, because it is not computed there.
func TestPicksOfLastLayer(t *testing.T) {
	e := openDemo(t, Options{Context: 64})
	e.SetHooks(engine.Hooks{Picks: true})
	m := e.Model()
	decode(t, e, 5, 2, func(b *engine.Batch) {
		for i, picks := range b.Picks {
			for layer := range m.Layers {
				computed := layer < m.Layers-1 || b.Rows[i].Logits
				for _, p := range picks[layer*m.ExpertsUsed : (layer+1)*m.ExpertsUsed] {
					if computed != (int(p) < m.Experts) || !computed && p != engine.NoPick {
						t.Errorf("row %d of %d picked %d in layer %d", i, len(b.Rows), p, layer)
					}
				}
			}
		}
	})
}

// TestSplit: only sampled passes have times per part.
func TestSplit(t *testing.T) {
	e := openDemo(t, Options{Context: 64})
	e.SetHooks(engine.Hooks{Split: true, Every: 2})
	pass := -2 // prompts are sampled separately
	decode(t, e, 8, 6, func(b *engine.Batch) {
		pass++
		if measured := pass == -1 || pass%2 == 0; measured != (len(b.Time.Layers) > 0) {
			t.Errorf("pass %d: times of %d layers", pass, len(b.Time.Layers))
		}
		for i, l := range b.Time.Layers {
			if l.Attention <= 0 || l.Router <= 0 || l.Experts <= 0 || b.Time.Embed <= 0 || b.Time.Head <= 0 {
				t.Errorf("pass %d: layer %d took %+v, lookup and head %d and %d", pass, i, l, b.Time.Embed, b.Time.Head)
			}
		}
	})
}

// TestOps times every operation: the operations of a mixture of experts occur in each layer, others outside layers.
func TestOps(t *testing.T) {
	e := openDemo(t, Options{Context: 64})
	if e.Ops() != nil {
		t.Error("operations were timed although the hook was off")
	}
	e.SetHooks(engine.Hooks{Ops: true})
	const tokens = 2 * unwatchedEvery
	decode(t, e, 4, tokens, nil)
	ops := e.Ops()
	if want := int64(tokens - 2); ops.Passes != want {
		t.Errorf("%d passes watched, want %d", ops.Passes, want)
	}
	if !ops.Slowdown.OK() || ops.Slowdown.V <= 0 {
		t.Errorf("slowdown %v", ops.Slowdown)
	}
	calls := map[string]map[int]int64{}
	for i, o := range ops.Times {
		if i > 0 && o.Dur > ops.Times[i-1].Dur || o.Dur <= 0 || o.Calls <= 0 {
			t.Errorf("%d. operation %+v", i, o)
		}
		if calls[o.Op] == nil {
			calls[o.Op] = map[int]int64{}
		}
		calls[o.Op][o.Layer] += o.Calls
	}
	for layer := range e.Model().Layers {
		for op, want := range map[string]int64{"MUL_MAT_ID": 3, "ROPE": 2, "ARGSORT": 1} {
			if got := calls[op][layer]; got != want*ops.Passes {
				t.Errorf("%s in layer %d: %d times in %d passes, want %d each", op, layer, got, ops.Passes, want)
			}
		}
	}
	if got := calls["MUL_MAT"][-1]; got != ops.Passes {
		t.Errorf("the head's product was computed %d times outside the layers, want %d", got, ops.Passes)
	}
}

// TestObservingKeepsResults: observing a pass does not change its result.
func TestObservingKeepsResults(t *testing.T) {
	e := openDemo(t, Options{Context: 128})
	prompt := readGolden(t).Texts[0].Prompt
	want := greedy(t, e, 0, prompt, 10)
	for _, h := range []engine.Hooks{{Experts: true, Every: 1}, {Split: true, Every: 1}, {Picks: true}, {Ops: true}} {
		e.SetHooks(h)
		if got := greedy(t, e, 0, prompt, 10); !slices.Equal(got, want) {
			t.Errorf("with %+v decoded %v, want %v", h, got, want)
		}
	}
}

// TestAuto: the sampling interval chosen by the engine is reported, and calibration is not counted.
func TestAuto(t *testing.T) {
	e := openDemo(t, Options{Context: 128})
	e.SetHooks(engine.Hooks{Experts: true, Split: true})
	if x := e.Router(); x.EveryN != e.rate.every || x.EveryN < 1 || x.EveryN > maxEvery || x.DecodeTokens != 0 || sum(x.Decode) != 0 {
		t.Errorf("1 in %d passes, %d tokens counted", x.EveryN, x.DecodeTokens)
	}
	e.rate.every = startEvery
	decode(t, e, 20, 10*startEvery, nil)
	if x := e.Router(); x.PromptTokens == 0 || x.DecodeTokens == 0 || x.EveryN != e.rate.every || len(e.rate.slower[settle]) == 0 {
		t.Errorf("%d prompt and %d decode tokens counted, %+v", x.PromptTokens, x.DecodeTokens, e.rate)
	}
}
