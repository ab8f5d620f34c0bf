package native_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// golden holds results of llama.cpp for the built-in model, per token.
type golden struct {
	Texts []struct {
		Kind       string
		Tokens     []int32
		Perplexity float64
		Top5       [][]struct {
			ID      int32
			LogProb float64
		}
		Experts      [][][]int32 // [layer][position], ascending
		Prompt       []int32     `json:"greedy_prompt_tokens"`
		GreedyTokens []int32     `json:"greedy_tokens"`
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// openDemo opens the built-in model with picks of every token enabled.
func openDemo(tb testing.TB, opt native.Options) *native.Engine {
	tb.Helper()
	e, err := native.OpenDemo(opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// compute runs tokens through slot 0 in batches of at most chunk, and calls f with each position's logits and picks.
func compute(t *testing.T, e engine.Engine, tokens []int32, chunk int, f func(pos int, logits []float32, picks []uint16)) {
	t.Helper()
	e.Release(0)
	var b engine.Batch
	for from := 0; from < len(tokens); from += chunk {
		b.Rows = b.Rows[:0]
		for pos := from; pos < min(from+chunk, len(tokens)); pos++ {
			b.Rows = append(b.Rows, engine.Row{Token: tokens[pos], Pos: int32(pos), Prompt: true, Logits: true})
		}
		if err := e.Forward(&b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Rows {
			var picks []uint16
			if len(b.Picks) > 0 {
				picks = b.Picks[i]
			}
			f(from+i, b.Logits[i], picks)
		}
	}
}

// logProbs converts logits to log-probabilities.
func logProbs(logits []float32) []float64 {
	top := float64(slices.Max(logits))
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	out := make([]float64, len(logits))
	for i, x := range logits {
		out[i] = float64(x) - top - math.Log(sum)
	}
	return out
}

// TestAgreesWithLlamaCpp compares the engine with llama.cpp's results for the same file: the likeliest token at 97 % of
// the positions, log-probabilities within 0.05 on average, perplexity within 0.5 %, and the router's picks at 97 %.
func TestAgreesWithLlamaCpp(t *testing.T) {
	for _, chunk := range []int{256, 100, 1} {
		e := openDemo(t, native.Options{Context: 1024})
		e.SetHooks(engine.Hooks{Picks: true})
		var positions, same, picks, samePicks, terms int
		var off float64
		for _, text := range readGolden(t).Texts {
			var nll float64
			compute(t, e, text.Tokens, chunk, func(pos int, logits []float32, chosen []uint16) {
				lp := logProbs(logits)
				positions++
				if argmax(logits) == text.Top5[pos][0].ID {
					same++
				}
				for _, c := range text.Top5[pos] {
					off += math.Abs(lp[c.ID] - c.LogProb)
					terms++
				}
				if pos+1 < len(text.Tokens) {
					nll -= lp[text.Tokens[pos+1]]
				}
				used := len(text.Experts[0][0])
				for layer := range text.Experts {
					got := slices.Sorted(slices.Values(chosen[layer*used : (layer+1)*used]))
					for i, want := range text.Experts[layer][pos] {
						picks++
						if int32(got[i]) == want {
							samePicks++
						}
					}
				}
			})
			perplexity := math.Exp(nll / float64(len(text.Tokens)-1))
			if math.Abs(perplexity/text.Perplexity-1) > 0.005 {
				t.Errorf("chunk %d, %s: perplexity %.4f, llama.cpp's is %.4f", chunk, text.Kind, perplexity, text.Perplexity)
			}
		}
		t.Logf("chunk %d: top-1 equal at %.2f %% of %d positions, mean |Δ log p| %.4f, picks equal %.2f %%",
			chunk, 100*float64(same)/float64(positions), positions, off/float64(terms), 100*float64(samePicks)/float64(picks))
		if 100*same < 97*positions {
			t.Errorf("chunk %d: top-1 equal at %d of %d positions", chunk, same, positions)
		}
		if off/float64(terms) >= 0.05 {
			t.Errorf("chunk %d: mean |Δ log p| is %.4f", chunk, off/float64(terms))
		}
		if 100*samePicks < 97*picks {
			t.Errorf("chunk %d: %d of %d picks equal", chunk, samePicks, picks)
		}
	}
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}
