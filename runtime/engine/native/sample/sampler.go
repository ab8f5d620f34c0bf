package sample

import (
	"math"
	"math/rand/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// firstNucleus is the number of tokens that are sorted at first to find a nucleus in the whole vocabulary. If they do
// not suffice, it grows fourfold.
const firstNucleus = 128

// Sampler is an engine.Sampler: it picks tokens for one sequence. It is not safe for concurrent use, and does not allocate after New.
type Sampler struct {
	params engine.Params
	window int // recent tokens that are penalised
	rng    *rand.Rand
	kept   []Logprob // remaining tokens, with their logits and then their weights
	logits []float32 // copy with penalties; nil without
	seen   []uint32  // round in which a token was last penalised
	round  uint32
	best   []Logprob // the likeliest tokens
	reach  float64   // ln(MinP): how far below the maximum a logit may be
}

// New returns a sampler for a vocabulary of the given size; Check must have accepted params.
func New(params engine.Params, vocab int) *Sampler {
	s := &Sampler{params: params, window: repeatWindow, rng: rand.New(rand.NewPCG(params.Seed, 0x6c6c6d746f70)), reach: math.Log(params.MinP)}
	if penalizes(params) {
		s.logits, s.seen = make([]float32, vocab), make([]uint32, vocab)
	}
	if params.Temperature > 0 {
		room := vocab
		if params.TopK > 0 {
			room = min(vocab, params.TopK)
		}
		s.kept = make([]Logprob, 0, room)
	}
	return s
}

// Sample picks a token. recent holds the ids so far, for the repetition penalty. logprob is the natural logarithm of
// the token's probability in the model's output, before penalty, filters and temperature. Among equal logits the lowest
// id comes first; NaN counts as impossible.
func (s *Sampler) Sample(logits []float32, recent []int32) (id int32, logprob float32) {
	id, highest := argmax(logits)
	x, best := logits, highest
	if s.logits != nil && len(recent) > 0 {
		x = s.penalize(logits, recent)
		id, best = argmax(x)
	}
	if s.params.Temperature > 0 {
		s.keep(x, best)
		if len(s.kept) > 0 {
			id = s.draw(best)
		}
	}
	return id, logits[id] - logSumExp(logits, highest)
}

// penalize returns a copy of the logits with the repetition penalty.
func (s *Sampler) penalize(logits []float32, recent []int32) []float32 {
	x := s.logits[:copy(s.logits, logits)]
	recent = recent[max(len(recent)-s.window, 0):]
	s.round++
	penalty := float32(s.params.RepeatPenalty)
	for _, id := range recent {
		if id < 0 || int(id) >= len(x) || s.seen[id] == s.round {
			continue
		}
		s.seen[id] = s.round
		if x[id] > 0 {
			x[id] /= penalty
		} else {
			x[id] *= penalty
		}
	}
	return x
}

// keep stores the tokens to draw from in s.kept, with their logits.
func (s *Sampler) keep(x []float32, best float32) {
	p := s.params
	least := float32(math.Inf(-1))
	if p.MinP > 0 {
		least = float32(float64(best) + s.reach)
	}
	switch {
	case p.TopK > 0 && p.TopK < len(x):
		s.kept = top(s.kept, x, p.TopK)
		if hasNucleus(p) {
			s.kept, _ = nucleus(s.kept, best, p.TopP*weight(s.kept, best))
		}
	case hasNucleus(p):
		s.keepNucleus(x, best)
	default:
		s.kept = s.kept[:0]
		for id, v := range x {
			if v >= least {
				s.kept = append(s.kept, Logprob{int32(id), v})
			}
		}
		return
	}
	for n := len(s.kept); n > 0 && s.kept[n-1].Value < least; n-- {
		s.kept = s.kept[:n-1]
	}
}

// keepNucleus finds the nucleus in the whole vocabulary.
func (s *Sampler) keepNucleus(x []float32, best float32) {
	share, enough := s.params.TopP*sumExp(x, best), false
	for n := firstNucleus; !enough; n *= 4 {
		s.kept = top(s.kept, x, min(n, len(x)))
		s.kept, enough = nucleus(s.kept, best, share)
		enough = enough || n >= len(x)
	}
}

// weight returns the sum of exp(logit - best).
func weight(tokens []Logprob, best float32) (sum float64) {
	for _, t := range tokens {
		sum += math.Exp(float64(t.Value - best))
	}
	return sum
}

// nucleus returns the shortest prefix of the sorted tokens with weight share; all of them and false if there is not
// enough.
func nucleus(tokens []Logprob, best float32, share float64) ([]Logprob, bool) {
	sum := 0.0
	for i, t := range tokens {
		if sum += math.Exp(float64(t.Value - best)); sum >= share {
			return tokens[:i+1], true
		}
	}
	return tokens, false
}

// draw picks one of the kept tokens, at least one, by its probability at the temperature.
func (s *Sampler) draw(best float32) int32 {
	sum, scale := 0.0, 1/s.params.Temperature
	for i, t := range s.kept {
		w := float32(math.Exp(float64(t.Value-best) * scale))
		s.kept[i].Value = w
		sum += float64(w)
	}
	left, id := s.rng.Float64()*sum, s.kept[0].ID
	for _, t := range s.kept {
		if t.Value > 0 {
			id = t.ID
		}
		if left -= float64(t.Value); left < 0 {
			break
		}
	}
	return id
}

// TopLogprobs implements engine.Sampler.
func (s *Sampler) TopLogprobs(dst []event.TopProb, logits []float32, k int) []event.TopProb {
	s.best = TopLogprobs(logits, k, s.best[:0])
	for _, l := range s.best {
		dst = append(dst, event.TopProb{ID: l.ID, LogP: l.Value})
	}
	return dst
}
