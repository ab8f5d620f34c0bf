// Package sample picks the next token from the logits of a model.
//
// The steps and their order are those of llama.cpp's default chain: repetition penalty, top-k, top-p, min-p,
// temperature, random draw. Top-p and min-p therefore use probabilities before temperature, and top-p those of the
// tokens that top-k has kept.
package sample

import (
	"fmt"
	"math"
)

// Params configures sampling. The zero value is greedy: always the token with the highest logit.
type Params struct {
	// Temperature divides the logits before the random draw; 0 is greedy.
	Temperature float64
	// TopK keeps the K tokens with the highest logits; 0 keeps all.
	TopK int
	// TopP keeps the smallest set of likeliest tokens with at least this total probability; 0 and 1 keep all.
	TopP float64
	// MinP keeps the tokens with at least this fraction of the likeliest token's probability; 0 keeps all.
	MinP float64
	// RepeatPenalty divides a positive logit and multiplies a negative one of each token among the last RepeatLastN; 0
	// and 1 have no effect.
	RepeatPenalty float64
	// RepeatLastN is the number of recent tokens that are penalised: -1 for all, 0 for none.
	RepeatLastN int
	// Seed makes sampling repeatable.
	Seed uint64
}

// Validate returns an error for the first parameter that is out of range.
func (p Params) Validate() error {
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
		{"repeat last n", float64(p.RepeatLastN), -1, math.MaxInt32},
	} {
		if !(c.value >= c.lo && c.value <= c.hi) { // also catches NaN
			return fmt.Errorf("check sampling: %s is %v, expected %v to %v", c.name, c.value, c.lo, c.hi)
		}
	}
	return nil
}

func (p Params) penalizes() bool {
	return p.RepeatLastN != 0 && p.RepeatPenalty != 0 && p.RepeatPenalty != 1
}

func (p Params) nucleus() bool { return p.TopP > 0 && p.TopP < 1 }
