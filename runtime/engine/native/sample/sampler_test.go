package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/runtime/engine"
)

// logitsOf generates the logits of a vocabulary, with ties.
func logitsOf(t *rapid.T) []float32 {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 {
		return float32(rapid.IntRange(-60, 60).Draw(t, "quarter logit")) / 4
	}), 1, 400).Draw(t, "logits")
}

func paramsOf(t *rapid.T) engine.Params {
	return engine.Params{
		Temperature:   rapid.Float64Range(0.05, 3).Draw(t, "temperature"),
		TopK:          rapid.SampledFrom([]int{0, 0, 1, 2, 7, 40, 500}).Draw(t, "top-k"),
		TopP:          rapid.SampledFrom([]float64{0, 0.01, 0.5, 0.9, 0.999, 1}).Draw(t, "top-p"),
		MinP:          rapid.SampledFrom([]float64{0, 0.05, 0.5, 1}).Draw(t, "min-p"),
		RepeatPenalty: rapid.SampledFrom([]float64{0, 1, 1.3, 0.7}).Draw(t, "penalty"),
		Seed:          rapid.Uint64().Draw(t, "seed"),
	}
}

// penalized computes the penalty directly from its definition.
func penalized(p engine.Params, window int, logits []float32, recent []int32) []float32 {
	x := slices.Clone(logits)
	if !penalizes(p) {
		return x
	}
	recent = recent[max(len(recent)-window, 0):]
	for id := range x {
		if !slices.Contains(recent, int32(id)) {
			continue
		}
		if x[id] > 0 {
			x[id] /= float32(p.RepeatPenalty)
		} else {
			x[id] *= float32(p.RepeatPenalty)
		}
	}
	return x
}

// allowed computes the probabilities that the parameters define, by sorting the whole vocabulary.
func allowed(p engine.Params, x []float32) map[int32]float64 {
	order := make([]int32, len(x))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(4 * (x[b] - x[a]) * 1000) })
	if p.TopK > 0 && p.TopK < len(order) {
		order = order[:p.TopK]
	}
	best, sum, cum := float64(x[order[0]]), 0.0, 0.0
	for _, id := range order {
		sum += math.Exp(float64(x[id]) - best)
	}
	for i, id := range order {
		if p.TopP > 0 && p.TopP < 1 && cum >= p.TopP*sum || p.MinP > 0 && float64(x[id])-best < math.Log(p.MinP)-1e-6 {
			order = order[:i]
			break
		}
		cum += math.Exp(float64(x[id]) - best)
	}
	out, total := map[int32]float64{}, 0.0
	for _, id := range order {
		out[id] = math.Exp((float64(x[id]) - best) / p.Temperature)
		total += out[id]
	}
	for id := range out {
		out[id] /= total
	}
	return out
}

// TestSampleMatchesDefinition compares the remaining tokens and their weights with the definition.
func TestSampleMatchesDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits, p := logitsOf(t), paramsOf(t)
		recent := rapid.SliceOfN(rapid.Int32Range(-2, int32(len(logits))), 0, 9).Draw(t, "recent")
		before := slices.Clone(logits)
		s := New(p, len(logits))
		s.window = rapid.SampledFrom([]int{3, repeatWindow}).Draw(t, "window")
		id, lp := s.Sample(logits, recent)
		if !slices.Equal(before, logits) {
			t.Fatal("the logits were changed")
		}
		want := allowed(p, penalized(p, s.window, logits, recent))
		if _, ok := want[id]; !ok {
			t.Fatalf("token %d is not among %v", id, want)
		}
		sum := 0.0
		for _, k := range s.kept {
			sum += float64(k.Value)
		}
		if len(s.kept) != len(want) {
			t.Fatalf("%d tokens are left, want %d", len(s.kept), len(want))
		}
		for _, k := range s.kept {
			if math.Abs(float64(k.Value)/sum-want[k.ID]) > 1e-5 {
				t.Fatalf("token %d has probability %g, want %g", k.ID, float64(k.Value)/sum, want[k.ID])
			}
		}
		if exact := exactLogprob(logits, id); math.Abs(float64(lp)-exact) > 1e-5*(1+math.Abs(exact)) {
			t.Fatalf("log-probability %g, want %g", lp, exact)
		}
	})
}

func exactLogprob(logits []float32, id int32) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(logits[id]))
	}
	return -math.Log(sum)
}

func TestGreedyTakesTheFirstBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := logitsOf(t)
		id, _ := New(engine.Params{TopK: 3, TopP: 0.5, MinP: 0.2}, len(logits)).Sample(logits, nil)
		if want := slices.Index(logits, slices.Max(logits)); int(id) != want {
			t.Fatalf("token %d, want %d", id, want)
		}
	})
}

func TestSeedRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits, p := logitsOf(t), paramsOf(t)
		a, b := New(p, len(logits)), New(p, len(logits))
		for range 20 {
			x, lx := a.Sample(logits, nil)
			y, ly := b.Sample(logits, nil)
			if x != y || lx != ly {
				t.Fatalf("tokens %d and %d", x, y)
			}
		}
	})
	flat := make([]float32, 1000)
	a, _ := New(engine.Params{Temperature: 1, Seed: 1}, 1000).Sample(flat, nil)
	b, _ := New(engine.Params{Temperature: 1, Seed: 2}, 1000).Sample(flat, nil)
	if a == b {
		t.Errorf("two seeds gave token %d", a)
	}
}

// TestFrequencies compares the frequencies of many draws with the probabilities; the seed is fixed.
func TestFrequencies(t *testing.T) {
	logits := []float32{0, 1, 2, 3, -1, 2.5}
	const draws = 40000
	for _, p := range []engine.Params{{Temperature: 1}, {Temperature: 0.5, TopK: 4}, {Temperature: 2, TopP: 0.9}, {Temperature: 1, MinP: 0.3}} {
		s, counts := New(p, len(logits)), map[int32]float64{}
		for range draws {
			id, _ := s.Sample(logits, nil)
			counts[id]++
		}
		for id, want := range allowed(p, logits) {
			// Five standard deviations of a binomial count.
			if math.Abs(counts[id]-draws*want) > 5*math.Sqrt(draws*want*(1-want)) {
				t.Errorf("%+v: token %d was drawn %g times, expected %g", p, id, counts[id], draws*want)
			}
		}
	}
}

func TestSumExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := append(rapid.SliceOfN(rapid.Float32Range(-200, 80), 0, 300).Draw(t, "logits"), 80)
		want := 0.0
		for _, v := range x {
			want += math.Exp(float64(v) - 80)
		}
		if got := sumExp(x, 80); math.Abs(got-want) > 1e-6*want {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func TestTopLogprobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits, k := logitsOf(t), rapid.IntRange(0, 20).Draw(t, "k")
		got := TopLogprobs(logits, k, nil)
		if len(got) != min(k, len(logits)) {
			t.Fatalf("%d of %d", len(got), k)
		}
		for i, l := range got {
			if math.Abs(float64(l.Value)-exactLogprob(logits, l.ID)) > 1e-4 {
				t.Fatalf("token %d: %g, want %g", l.ID, l.Value, exactLogprob(logits, l.ID))
			}
			if i > 0 && !ranksAfter(Logprob{l.ID, logits[l.ID]}, Logprob{got[i-1].ID, logits[got[i-1].ID]}) {
				t.Fatalf("not in order: %v", got)
			}
		}
		for id, v := range logits {
			in := slices.ContainsFunc(got, func(l Logprob) bool { return l.ID == int32(id) })
			if n := len(got); n > 0 && !in && v > logits[got[n-1].ID] {
				t.Fatalf("token %d is missing in %v", id, got)
			}
		}
	})
}

// TestInvalidLogits uses logits of a broken model: any token of the vocabulary is accepted.
func TestInvalidLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, logits := range [][]float32{{nan, nan, nan}, {-inf, -inf, -inf}, {inf, inf, 0}, {nan, 1, -inf}, {0}} {
		for _, p := range []engine.Params{{}, {Temperature: 1}, {Temperature: 1, TopK: 2}, {Temperature: 1, TopP: 0.5}, {Temperature: 1, MinP: 0.1}, {Temperature: 1, TopK: 2, TopP: 0.1, MinP: 1}} {
			if id, _ := New(p, len(logits)).Sample(logits, []int32{0}); id < 0 || int(id) >= len(logits) {
				t.Errorf("%v, %+v: token %d", logits, p, id)
			} else if logits[0] != logits[0] && len(logits) > 1 && logits[1] == 1 && id != 1 {
				t.Errorf("%v, %+v: token %d instead of the only possible one", logits, p, id)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	if err := Check(engine.Params{}); err != nil {
		t.Error(err)
	}
	if err := Check(engine.Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1, Seed: 1}); err != nil {
		t.Error(err)
	}
	for name, p := range map[string]engine.Params{
		"temperature": {Temperature: -1}, "top-k": {TopK: -1}, "top-p": {TopP: 1.5}, "min-p": {MinP: math.NaN()},
		"repeat penalty": {RepeatPenalty: math.Inf(1)},
	} {
		if err := Check(p); err == nil || !strings.HasPrefix(err.Error(), "check sampling: "+name+" is ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// peaked returns logits with a few likely tokens, as models generate them.
func peaked(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 2.5)
	}
	for range 20 {
		x[r.IntN(n)] += 10
	}
	return x
}

var settings = map[string]engine.Params{
	"greedy":  {},
	"default": {Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1},
	"top-p":   {Temperature: 0.8, TopP: 0.95},
	"all":     {Temperature: 1},
}

func TestNoAllocations(t *testing.T) {
	logits, recent := peaked(4096), []int32{1, 2, 3}
	for name, p := range settings {
		s := New(p, len(logits))
		if n := testing.AllocsPerRun(50, func() { s.Sample(logits, recent) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	dst := make([]Logprob, 0, 5)
	if n := testing.AllocsPerRun(50, func() { dst = TopLogprobs(logits, 5, dst) }); n != 0 {
		t.Errorf("TopLogprobs: %v allocations", n)
	}
}

func BenchmarkSample(b *testing.B) {
	recent := make([]int32, 64)
	for _, vocab := range []int{4096, 151936} {
		logits := peaked(vocab)
		for name, p := range settings {
			b.Run(fmt.Sprintf("%s/%d", name, vocab), func(b *testing.B) {
				s := New(p, vocab)
				b.ReportAllocs()
				for b.Loop() {
					s.Sample(logits, recent)
				}
			})
		}
	}
}

func BenchmarkTopLogprobs(b *testing.B) {
	logits, dst := peaked(151936), make([]Logprob, 0, 20)
	b.ReportAllocs()
	for b.Loop() {
		dst = TopLogprobs(logits, 20, dst)
	}
}
