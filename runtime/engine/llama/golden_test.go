//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
)

// golden holds results of llama.cpp for the built-in model, per token.
type golden struct {
	Texts []struct {
		Kind    string
		Text    string
		Tokens  []int32
		Top5    [][]struct{ ID int32 }
		Experts [][][]int32 // [layer][position], ascending
		Prompt  []int32     `json:"greedy_prompt_tokens"`
		Greedy  []int32     `json:"greedy_tokens"`
	}
}

func readGolden(tb testing.TB) (g golden) {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "native", "testdata", "golden.json"))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		tb.Fatal(err)
	}
	if len(g.Texts) == 0 {
		tb.Fatal("golden.json has no texts")
	}
	return g
}

// TestTokenizesLikeGolden compares token ids with golden.json; their pieces must spell the text.
func TestTokenizesLikeGolden(t *testing.T) {
	e := openDemo(t, Options{Context: 256})
	for _, text := range readGolden(t).Texts {
		if got := e.Encode(nil, text.Text, false); !slices.Equal(got, text.Tokens) {
			t.Errorf("%s: tokens\n%v, want\n%v", text.Kind, got, text.Tokens)
		}
		spelled := ""
		for _, id := range text.Tokens {
			spelled += e.Piece(id)
		}
		if spelled != text.Text {
			t.Errorf("%s: pieces spell %q, want %q", text.Kind, spelled, text.Text)
		}
	}
}

// golden.json was computed on one processor; kernels for others round differently (bfloat16, AMX). They prefer another
// token where two are about as likely, and pick another expert where two score alike, which changes what follows.
const (
	minTop   = 0.95  // share of positions with the same likeliest token
	minPicks = 0.995 // share of equal picks
)

// TestPicksLikeGolden compares the likeliest tokens and the router's picks with golden.json at all positions.
func TestPicksLikeGolden(t *testing.T) {
	e := openDemo(t, Options{Context: 1024, Logits: DefaultBatch})
	e.SetHooks(engine.Hooks{Picks: true})
	used := e.Model().ExpertsUsed
	for _, text := range readGolden(t).Texts {
		top, picks, same := 0, 0, 0
		compute(t, e, text.Tokens, len(text.Tokens), func(pos int, logits []float32, chosen []uint16) {
			if argmax(logits) == text.Top5[pos][0].ID {
				top++
			}
			for layer := range text.Experts {
				got := slices.Sorted(slices.Values(chosen[layer*used : (layer+1)*used]))
				for i, want := range text.Experts[layer][pos] {
					picks++
					if int32(got[i]) == want {
						same++
					}
				}
			}
		})
		if float64(top) < minTop*float64(len(text.Tokens)) || float64(same) < minPicks*float64(picks) {
			t.Errorf("%s: top-1 equal at %d of %d positions, %d of %d picks equal", text.Kind, top, len(text.Tokens), same, picks)
		}
	}
}

// TestContinuesLikeGolden compares generated text with golden.json.
func TestContinuesLikeGolden(t *testing.T) {
	e := openDemo(t, Options{Context: 1024})
	for _, text := range readGolden(t).Texts {
		got := greedy(t, e, 0, text.Prompt, len(text.Greedy))
		if !slices.Equal(got, text.Greedy) {
			t.Errorf("%s: continues with\n%v, want\n%v", text.Kind, got, text.Greedy)
		}
	}
}

// greedy releases a slot and continues a prompt in it.
func greedy(tb testing.TB, e engine.Engine, slot int32, prompt []int32, n int) (ids []int32) {
	tb.Helper()
	e.Release(int(slot))
	b := engine.Batch{}
	for i, id := range prompt {
		b.Rows = append(b.Rows, engine.Row{Token: id, Pos: int32(i), Slot: slot, Prompt: true, Logits: i == len(prompt)-1})
	}
	for len(ids) < n {
		if err := e.Forward(&b); err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, argmax(b.Logits[0]))
		b.Rows = append(b.Rows[:0], engine.Row{Token: ids[len(ids)-1], Pos: int32(len(prompt) + len(ids) - 1), Slot: slot, Logits: true})
	}
	return ids
}
