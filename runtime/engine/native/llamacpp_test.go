//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package native_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/llama"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// openLlamaCpp opens a model created from a blueprint with llama.cpp, or skips the test.
func openLlamaCpp(t *testing.T, p blueprint) *llama.Engine {
	t.Helper()
	dir := os.Getenv("LLMTOP_LLAMA_DIR")
	if dir == "" {
		t.Skip(`needs llama.cpp's libraries: run eval "$(scripts/peers.sh)" first, which installs them and sets LLMTOP_LLAMA_DIR`)
	}
	path := filepath.Join(t.TempDir(), p.String()+".gguf")
	if err := os.WriteFile(path, p.bytes(t), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := llama.Open(llama.Options{Model: path, Libraries: dir, Context: 256, Batch: 128, Logits: 128, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.SetHooks(engine.Hooks{Picks: true, Experts: true, Every: 1})
	return e
}

// TestAgreesWithLlamaEngine computes models of several shapes with both engines: the likeliest token is the same at
// 97 % of all positions, the router's picks at 90 % (a different pick at a near tie in one layer changes the following
// layers), and both describe the model the same way.
func TestAgreesWithLlamaEngine(t *testing.T) {
	dense, experts := shapes(tensor.Q4_0), shapes(tensor.Q8_0) // whose activations both round to the same values
	var total agreement
	for _, p := range []blueprint{dense[0], dense[1], dense[3], experts[4], dense[5], experts[6]} {
		t.Run(p.String(), func(t *testing.T) {
			other, own := openLlamaCpp(t, p), p.open(t, native.Options{Context: 256, Threads: 1})
			tokens := text(3, 100, p.vocab)
			var logits [][]float64
			var picks [][]uint16
			compute(t, other, tokens, len(tokens), func(_ int, row []float32, chosen []uint16) {
				logits, picks = append(logits, logProbs(row)), append(picks, append([]uint16(nil), chosen...))
			})
			var a agreement
			var all, same int
			compute(t, own, tokens, 50, func(pos int, row []float32, chosen []uint16) {
				a.add(logProbs(row), logits[pos])
				for i, pick := range chosen {
					all++
					if pick == picks[pos][i] {
						same++
					}
				}
			})
			a.check(t, 0.05, 0.95)
			total.join(a)
			if 10*same < 9*all {
				t.Errorf("%d of %d picks are the same", same, all)
			}
			if own, other := own.Model(), other.Model(); own.Active != other.Active || own.WeightBytes != other.WeightBytes ||
				own.KVBytes != other.KVBytes || own.HeadDim != other.HeadDim || own.Quantisation != other.Quantisation {
				t.Errorf("the model is\n%+v, according to llama.cpp\n%+v", own, other)
			}
		})
	}
	if total.top > 0 {
		total.check(t, 0.05, 0.97)
	}
}

// TestHarmlessForLlamaEngine shows that llama.cpp ignores the same metadata.
func TestHarmlessForLlamaEngine(t *testing.T) {
	for _, p := range keyed() {
		t.Run(p.String(), func(t *testing.T) {
			if !slices.Equal(logitsOf(t, openLlamaCpp(t, p)), logitsOf(t, openLlamaCpp(t, harmless(p)))) {
				t.Error("the logits have changed")
			}
		})
	}
}

// TestSharedExpert runs a model with a shared expert, which only llama.cpp supports. The router's picks are counted;
// the shared expert is not.
func TestSharedExpert(t *testing.T) {
	p := shapes(tensor.Q8_0)[6]
	p.architecture, p.shared, p.bias = "qwen2moe", 256, true
	if _, err := native.OpenBytes(p.String(), p.bytes(t), native.Options{}); err == nil {
		t.Error("the native engine supports the architecture: compare the two")
	}
	e := openLlamaCpp(t, p)
	tokens := text(3, 40, p.vocab)
	compute(t, e, tokens, 20, func(pos int, logits []float32, picks []uint16) {
		if v := logProbs(logits)[0]; math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("position %d: log-probability %v", pos, v)
		}
		if len(picks) != p.layers*p.used {
			t.Errorf("position %d: picks %v", pos, picks)
		}
	})
	x := e.Router()
	if x.Experts != p.experts || x.Used != p.used || x.PromptTokens != 40 {
		t.Fatalf("router %+v", x)
	}
	var n uint64
	for _, c := range x.Prompt {
		n += c
	}
	if want := uint64(40 * p.layers * p.used); n != want {
		t.Errorf("%d picks, want %d", n, want)
	}
}
