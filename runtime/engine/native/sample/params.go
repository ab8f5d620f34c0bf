// Package sample picks the next token from the logits of a model.
//
// The steps and their order are those of llama.cpp's default chain: repetition penalty, top-k, top-p, min-p,
// temperature, random draw. Top-p and min-p therefore use probabilities before temperature, and top-p those of the
// tokens that top-k has kept.
package sample

import (
	"fmt"
	"math"

	"github.com/llmtop/llmtop/runtime/engine"
)

// repeatWindow is the number of recent tokens that the repetition penalty considers, llama.cpp's default.
const repeatWindow = 64

// Check returns an error for the first parameter that is out of range.
func Check(p engine.Params) error {
	for _, c := range []struct {
		name   string
		value  float64
		lo, hi float64
	}{
		{"temperature", p.Temperature, 0, 1000},
		{"top-k", float64(p.TopK), 0, math.MaxInt32},
		{"top-p", p.TopP, 0, 1},
		{"min-p", p.MinP, 0, 1},
		{"repeat penalty", p.RepeatPenalty, 0, 1000},
	} {
		if !(c.value >= c.lo && c.value <= c.hi) { // also catches NaN
			return fmt.Errorf("check sampling: %s is %v, expected %v to %v", c.name, c.value, c.lo, c.hi)
		}
	}
	return nil
}

func penalizes(p engine.Params) bool { return p.RepeatPenalty != 0 && p.RepeatPenalty != 1 }

func hasNucleus(p engine.Params) bool { return p.TopP > 0 && p.TopP < 1 }
