package native

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native/sample"
)

// sampler is a sample.Sampler as the scheduler wants it.
type sampler struct {
	*sample.Sampler
	best []sample.Logprob
}

// repeatWindow is how many tokens back the repetition penalty looks, as in llama.cpp's default.
const repeatWindow = 64

// params translates the scheduler's parameters.
func params(p runtime.Params) sample.Params {
	return sample.Params{
		Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP,
		RepeatPenalty: p.RepeatPenalty, RepeatLastN: repeatWindow, Seed: p.Seed,
	}
}

// CheckParams refuses parameters that cannot be sampled with, naming the first.
func CheckParams(p runtime.Params) error { return params(p).Validate() }

// NewSampler makes the sampler of one request; CheckParams must have accepted p.
func NewSampler(p runtime.Params, vocabulary int) runtime.Sampler {
	return &sampler{Sampler: sample.New(params(p), vocabulary)}
}

// TopLogprobs implements runtime.Sampler.
func (s *sampler) TopLogprobs(dst []event.TopProb, logits []float32, k int) []event.TopProb {
	s.best = sample.TopLogprobs(logits, k, s.best[:0])
	for _, l := range s.best {
		dst = append(dst, event.TopProb{ID: l.ID, LogP: l.Value})
	}
	return dst
}
