package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDrift(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	for _, c := range []struct {
		name          string
		before, after []uint64
		want          Drift
	}{
		// shares 1/2 1/2: sqrt(2/pi x (1/6 + 1/12) x 1/4), twice, halved
		{"the same", []uint64{3, 3}, []uint64{6, 6}, Drift{Chance: math.Sqrt(2 / math.Pi * (1./6 + 1./12) / 4)}},
		{"other experts", []uint64{4, 0}, []uint64{0, 9}, Drift{Moved: 1, Chance: math.Sqrt(2 / math.Pi * (1./4 + 1./9) / 4), Expert: 0, Change: -1}},
		// shares 1/2 1/4 1/4 and 1/4 1/4 1/2, mean 3/8 1/4 3/8
		{"a quarter", []uint64{2, 1, 1}, []uint64{2, 2, 4}, Drift{
			Moved: .25, Change: -.25, Chance: math.Sqrt(2/math.Pi*(1./4+1./8)) * (2*math.Sqrt(15)/8 + math.Sqrt(3)/4) / 2,
		}},
		{"counts whose sum exceeds an integer", []uint64{1 << 63, 1 << 63}, []uint64{1 << 62, 3 << 62}, Drift{
			Moved: .25, Change: -.25, Chance: math.Sqrt(2 / math.Pi * 2 / (1 << 64) * 15 / 64),
		}},
		{"few picks", []uint64{1, 0, 0, 0}, []uint64{0, 0, 0, 1}, Drift{Moved: 1, Change: -1, Chance: math.Sqrt(4/math.Pi) / 2}},
	} {
		got, ok := DriftOf(c.before, c.after)
		if !ok || !near(got.Moved, c.want.Moved) || !near(got.Chance, c.want.Chance) || got.Expert != c.want.Expert || !near(got.Change, c.want.Change) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, none := range [][2][]uint64{{{0, 0}, {1, 0}}, {{1, 0}, {0, 0}}, {{1, 2}, {3}}, {}} {
		if d, ok := DriftOf(none[0], none[1]); ok {
			t.Errorf("without picks %+v", d)
		}
	}
}

// Chance must be the average drift between two samples of the same distribution.
func TestDriftExpectedByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	const k, n1, n2, tries = 16, 400, 900, 400
	sample := func(n int) []uint64 {
		out := make([]uint64, k)
		for range n {
			out[int(float64(k)*rng.Float64()*rng.Float64())]++ // uneven
		}
		return out
	}
	moved, chance := 0.0, 0.0
	for range tries {
		d, _ := DriftOf(sample(n1), sample(n2))
		moved, chance = moved+d.Moved/tries, chance+d.Chance/tries
	}
	if ratio := moved / chance; ratio < 0.9 || ratio > 1.1 {
		t.Errorf("two samples differ by %v on average, predicted %v", moved, chance)
	}
}
