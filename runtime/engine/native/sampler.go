package native

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native/sample"
)

// sampler adapts a sample.Sampler to engine.Sampler.
type sampler struct {
	*sample.Sampler
	best []sample.Logprob
}

// repeatWindow is the number of tokens that the repetition penalty considers, llama.cpp's default.
const repeatWindow = 64

// params converts the scheduler's parameters.
func params(p engine.Params) sample.Params {
	return sample.Params{
		Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP,
		RepeatPenalty: p.RepeatPenalty, RepeatLastN: repeatWindow, Seed: p.Seed,
	}
}

// CheckParams returns an error for the first invalid parameter.
func CheckParams(p engine.Params) error { return params(p).Validate() }

// NewSampler creates the sampler of one request; CheckParams must have accepted p.
func NewSampler(p engine.Params, vocabulary int) engine.Sampler {
	return &sampler{Sampler: sample.New(params(p), vocabulary)}
}

// TopLogprobs implements engine.Sampler.
func (s *sampler) TopLogprobs(dst []event.TopProb, logits []float32, k int) []event.TopProb {
	s.best = sample.TopLogprobs(logits, k, s.best[:0])
	for _, l := range s.best {
		dst = append(dst, event.TopProb{ID: l.ID, LogP: l.Value})
	}
	return dst
}
