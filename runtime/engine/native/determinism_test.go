package native_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// text returns a sequence of pseudo-random tokens that depends on seed.
func text(seed, n, vocabulary int) []int32 {
	out, state := make([]int32, n), uint64(seed)*0x9e3779b97f4a7c15+1
	for i := range out {
		state = state*6364136223846793005 + 1442695040888963407
		out[i] = int32(state >> 33 % uint64(vocabulary))
	}
	return out
}

// sequence is the state of a text in a slot.
type sequence struct {
	slot   int32
	tokens []int32
	pos    int
	logits [][]float32 // per position so far; nil where none were requested
	picks  [][]uint16
}

// next returns the rows of the sequence's next n tokens. Unless every is set, only the last row requests logits.
func (s *sequence) next(n int, prompt, every bool) (rows []engine.Row) {
	for i := range n {
		rows = append(rows, engine.Row{
			Token: s.tokens[s.pos+i], Pos: int32(s.pos + i), Slot: s.slot, Prompt: prompt, Logits: every || i == n-1,
		})
	}
	return rows
}

// forward computes a batch and distributes its results to the sequences.
func forward(t *testing.T, e *native.Engine, rows []engine.Row, all ...*sequence) {
	t.Helper()
	b := engine.Batch{Rows: rows}
	if err := e.Forward(&b); err != nil {
		t.Fatal(err)
	}
	wanted := 0
	for i, row := range rows {
		s := all[slices.IndexFunc(all, func(s *sequence) bool { return s.slot == row.Slot })]
		var logits []float32
		if row.Logits {
			logits = slices.Clone(b.Logits[wanted])
			wanted++
		}
		s.logits = append(s.logits, logits)
		if len(b.Picks) > 0 {
			s.picks = append(s.picks, slices.Clone(b.Picks[i]))
		}
		s.pos++
	}
	if wanted != len(b.Logits) {
		t.Fatalf("%d rows wanted logits, %d got them", wanted, len(b.Logits))
	}
}

// alone computes a text in one batch on one thread: the reference for all other ways of computing it.
func alone(t *testing.T, open opener, tokens []int32) *sequence {
	t.Helper()
	e := open(t, native.Options{Context: 128, Threads: 1})
	s := &sequence{tokens: tokens}
	forward(t, e, s.next(len(tokens), true, true), s)
	return s
}

// same compares bit for bit.
func same(t *testing.T, what string, got, want *sequence) {
	t.Helper()
	for pos := range got.pos {
		if len(got.picks) > 0 && !slices.Equal(got.picks[pos], want.picks[pos]) {
			t.Errorf("%s: position %d picked %v, alone %v", what, pos, got.picks[pos], want.picks[pos])
			return
		}
		if got.logits[pos] == nil {
			continue
		}
		for i, x := range got.logits[pos] {
			if x != want.logits[pos][i] {
				t.Errorf("%s: logit %d at position %d is %v, alone %v", what, i, pos, x, want.logits[pos][i])
				return
			}
		}
	}
}

// opener opens a model with picks of every token enabled.
type opener func(testing.TB, native.Options) *native.Engine

func openDemoPicks(tb testing.TB, opt native.Options) *native.Engine {
	e := openDemo(tb, opt)
	e.SetHooks(engine.Hooks{Picks: true})
	return e
}

// TestReproducible: every way of computing a text gives the same bits. Batches of up to four rows use another code path
// than larger ones, so chunks and batches of both sizes are tested.
func TestReproducible(t *testing.T) {
	sameBits(t, openDemoPicks, 4096)
}

func sameBits(t *testing.T, open opener, vocabulary int) {
	t.Helper()
	const n = 45
	a, b := text(1, n, vocabulary), text(2, n, vocabulary)
	wantA, wantB := alone(t, open, a), alone(t, open, b)
	for _, threads := range []int{1, 2, 3} {
		e := open(t, native.Options{Context: 128, Threads: threads, Slots: 3, MaxBatch: 64})
		for _, chunk := range []int{1, 2, 3, 4, 5, 6, 16, 33, n} {
			s := &sequence{tokens: a, slot: 1}
			for s.pos < n {
				forward(t, e, s.next(min(chunk, n-s.pos), true, chunk%2 == 1), s)
			}
			same(t, fmt.Sprintf("%d threads, chunks of %d", threads, chunk), s, wantA)
		}
		prompt := &sequence{tokens: a}
		forward(t, e, prompt.next(30, true, false), prompt)
		for prompt.pos < n {
			forward(t, e, prompt.next(1, false, true), prompt)
		}
		same(t, fmt.Sprintf("%d threads, prompt of 30, then decode", threads), prompt, wantA)
		for _, rows := range []int{1, 2, 3, 4, 7, 12} {
			withMates(t, e, rows, wantA, wantB)
		}
		interleaved(t, e, wantA, wantB)
	}
}

// withMates decodes one text while another text's prompt is computed in pieces and a third sequence decodes, too.
func withMates(t *testing.T, e *native.Engine, rows int, wantA, wantB *sequence) {
	t.Helper()
	a, b := &sequence{tokens: wantA.tokens, slot: 0}, &sequence{tokens: wantB.tokens, slot: 2}
	c := &sequence{tokens: wantB.tokens, slot: 1}
	forward(t, e, a.next(9, true, false), a)
	forward(t, e, c.next(3, true, false), c)
	for b.pos+rows <= len(b.tokens) && a.pos < len(a.tokens) {
		batch := slices.Concat(a.next(1, false, true), b.next(rows, true, false), c.next(1, false, true))
		forward(t, e, batch, a, b, c)
	}
	for _, s := range []struct{ got, want *sequence }{{a, wantA}, {b, wantB}, {c, wantB}} {
		same(t, fmt.Sprintf("slot %d of three, %d prompt rows at a time", s.got.slot, rows), s.got, s.want)
	}
}

// interleaved computes two texts with alternating rows, in batches of both sizes.
func interleaved(t *testing.T, e *native.Engine, wantA, wantB *sequence) {
	t.Helper()
	for _, n := range []int{2, 5} {
		a, b := &sequence{tokens: wantA.tokens, slot: 0}, &sequence{tokens: wantB.tokens, slot: 2}
		for a.pos+n <= len(a.tokens) {
			var rows []engine.Row
			ra, rb := a.next(n, true, true), b.next(n, true, true)
			for i := range ra {
				rows = append(rows, ra[i], rb[i])
			}
			forward(t, e, rows, a, b)
		}
		same(t, fmt.Sprintf("first of two that take turns, %d rows each", n), a, wantA)
		same(t, fmt.Sprintf("second of two that take turns, %d rows each", n), b, wantB)
	}
}

// TestReproducibleAfterKeep: a text that continues from the beginning of another one in the same slot gives the same bits
// as alone.
func TestReproducibleAfterKeep(t *testing.T) {
	const n, kept = 40, 25
	first := text(1, n, 4096)
	second := slices.Concat(first[:kept], text(2, n-kept, 4096))
	want := alone(t, openDemoPicks, second)
	e := openDemoPicks(t, native.Options{Context: 64, Threads: 2, Slots: 2})
	before := &sequence{tokens: first, slot: 1}
	forward(t, e, before.next(n, true, true), before)
	if got := e.Keep(1, kept); got != kept {
		t.Fatalf("kept %d of %d tokens", got, kept)
	}
	after := &sequence{tokens: second, slot: 1, pos: kept, logits: before.logits[:kept], picks: before.picks[:kept]}
	forward(t, e, after.next(n-kept, true, true), after)
	same(t, "after another text", after, want)
}
