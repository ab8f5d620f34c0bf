package native_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// TestCheckParams: the error of an invalid parameter names it.
func TestCheckParams(t *testing.T) {
	if err := native.CheckParams(engine.Params{Temperature: 0.8, TopK: 40, TopP: 0.9, MinP: 0.05, RepeatPenalty: 1.1, Seed: 1}); err != nil {
		t.Error(err)
	}
	for name, p := range map[string]engine.Params{
		"temperature":    {Temperature: math.NaN()},
		"top-k":          {TopK: -1},
		"top-p":          {TopP: 1.5},
		"min-p":          {MinP: -0.1},
		"repeat penalty": {RepeatPenalty: math.Inf(1)},
	} {
		if err := native.CheckParams(p); err == nil || !strings.Contains(err.Error(), name+" is ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSampler calls the sampler as the scheduler does: each parameter affects its picks.
func TestSampler(t *testing.T) {
	logits := []float32{0, 3, 2.9, -1, 2}
	pick := func(p engine.Params, history ...int32) int32 {
		id, logp := native.NewSampler(p, len(logits)).Sample(slices.Clone(logits), history)
		if logp > 0 || logp < -20 {
			t.Errorf("log-probability %v of token %d", logp, id)
		}
		return id
	}
	if id := pick(engine.Params{}); id != 1 {
		t.Errorf("greedy picked %d", id)
	}
	if id := pick(engine.Params{RepeatPenalty: 1.5}, 1, 0); id != 2 {
		t.Errorf("with token 1 penalised: %d", id)
	}
	long := append([]int32{1}, make([]int32, 64)...) // the penalty considers 64 tokens
	if id := pick(engine.Params{RepeatPenalty: 1.5}, long...); id != 1 {
		t.Errorf("with token 1 too far back: %d", id)
	}
	for name, p := range map[string]engine.Params{"top-k": {Temperature: 900, TopK: 1}, "top-p": {Temperature: 900, TopP: 0.1}, "min-p": {Temperature: 900, MinP: 0.99}} {
		for p.Seed = range 20 {
			if id := pick(p); id != 1 {
				t.Errorf("%s left token %d", name, id)
			}
		}
	}
	draw := func(seed uint64) (ids []int32) {
		s := native.NewSampler(engine.Params{Temperature: 2, Seed: seed}, len(logits))
		for range 50 {
			id, _ := s.Sample(slices.Clone(logits), nil)
			ids = append(ids, id)
		}
		return ids
	}
	if !slices.Equal(draw(7), draw(7)) || slices.Equal(draw(7), draw(8)) {
		t.Errorf("seed 7 drew %v and %v, seed 8 %v", draw(7), draw(7), draw(8))
	}
}

func TestTopLogprobs(t *testing.T) {
	s := native.NewSampler(engine.Params{}, 4)
	for range 2 { // the buffer is reused
		top := s.TopLogprobs(nil, []float32{0, 2, float32(math.Log(3)), 2}, 3)
		if len(top) != 3 || top[0].ID != 1 || top[1].ID != 3 || top[2].ID != 2 {
			t.Fatalf("top %+v", top)
		}
		sum := 1 + 2*math.Exp(2) + 3
		if got, want := float64(top[2].LogP), math.Log(3/sum); math.Abs(got-want) > 1e-5 {
			t.Errorf("log-probability %v, want %v", got, want)
		}
	}
}
