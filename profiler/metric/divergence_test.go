package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestJensenShannon(t *testing.T) {
	for _, c := range []struct {
		name       string
		a, b       []uint64
		want, luck float64
	}{
		{"the same", []uint64{1, 2, 3}, []uint64{2, 4, 6}, 0, 2 / (8 * math.Ln2) * (1./6 + 1./12)},
		{"apart", []uint64{4, 0}, []uint64{0, 9}, 1, 1 / (8 * math.Ln2) * (1./4 + 1./9)},
		// p = 1/2 1/2, q = 1 0, m = 3/4 1/4: KL(p||m) = (log 2/3 + log 2) / 2 = 0.207519, KL(q||m) = log 4/3 = 0.415037
		{"half", []uint64{5, 5}, []uint64{8, 0}, (0.20751874963942 + 0.41503749927884) / 2, 1 / (8 * math.Ln2) * (1./10 + 1./8)},
		{"one expert is never picked", []uint64{5, 5, 0}, []uint64{8, 0, 0}, (0.20751874963942 + 0.41503749927884) / 2, 1 / (8 * math.Ln2) * (1./10 + 1./8)},
	} {
		got, luck, ok := JensenShannon(c.a, c.b)
		back, _, _ := JensenShannon(c.b, c.a)
		if !ok || math.Abs(got-c.want) > 1e-12 || math.Abs(luck-c.luck) > 1e-12 || math.Abs(got-back) > 1e-12 {
			t.Errorf("%s: %v by chance %v, back %v; want %v by %v", c.name, got, luck, back, c.want, c.luck)
		}
	}
	for _, none := range [][]uint64{{0, 0}, {}} {
		if d, _, ok := JensenShannon(none, make([]uint64, len(none))); ok {
			t.Errorf("without picks they are %v apart", d)
		}
	}
}

// What is told to come by chance is what two samples of the same distribution are apart on average.
func TestJensenShannonByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	const k, n1, n2, tries = 16, 400, 900, 400
	sample := func(n int) []uint64 {
		out := make([]uint64, k)
		for range n {
			out[int(float64(k)*rng.Float64()*rng.Float64())]++ // uneven
		}
		return out
	}
	sum, told := 0.0, 0.0
	for range tries {
		d, luck, _ := JensenShannon(sample(n1), sample(n2))
		sum, told = sum+d/tries, told+luck/tries
	}
	if ratio := sum / told; ratio < 0.85 || ratio > 1.15 {
		t.Errorf("two samples are %v apart on average, told was %v", sum, told)
	}
}
