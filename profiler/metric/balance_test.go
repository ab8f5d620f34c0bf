package metric

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBalance(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts []uint64
		want   Balance
	}{
		{"none", nil, Balance{}},
		{"no picks", []uint64{0, 0}, Balance{Dead: 2}},
		{"even", []uint64{5, 5, 5, 5}, Balance{Total: 20, MaxMean: 1, Entropy: 1}},
		{"all on one", []uint64{0, 12, 0, 0}, Balance{Total: 12, MaxMean: 4, CV: math.Sqrt(3), Dead: 3}},
		{"two of four", []uint64{3, 3, 0, 0}, Balance{Total: 6, MaxMean: 2, CV: 1, Entropy: .5, Dead: 2}},
		{"a single expert", []uint64{7}, Balance{Total: 7, MaxMean: 1}},
		// mean 2, deviations 1, 0, -1: variance 2/3; entropy -(1/2 ln 1/2 + 1/3 ln 1/3 + 1/6 ln 1/6) = 1.01140
		{"3 2 1", []uint64{3, 2, 1}, Balance{Total: 6, MaxMean: 1.5, CV: math.Sqrt(2./3) / 2, Entropy: 1.0114042647073518 / math.Log(3)}},
	} {
		got := BalanceOf(c.counts)
		if got.Total != c.want.Total || got.Dead != c.want.Dead || math.Abs(got.MaxMean-c.want.MaxMean) > 1e-12 ||
			math.Abs(got.CV-c.want.CV) > 1e-12 || math.Abs(got.Entropy-c.want.Entropy) > 1e-12 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestBalanceRange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		counts := rapid.SliceOfN(rapid.Uint64Range(0, 1e12), 2, 300).Draw(rt, "counts")
		b := BalanceOf(counts)
		if b.Total == 0 {
			return
		}
		if n := float64(len(counts)); b.MaxMean < 1-1e-9 || b.MaxMean > n+1e-9 || b.Entropy < 0 || b.Entropy > 1+1e-9 || b.CV < 0 || b.CV > math.Sqrt(n)+1e-9 {
			rt.Fatalf("%+v of %d experts", b, len(counts))
		}
	})
}

func TestExtremes(t *testing.T) {
	for _, c := range []struct {
		counts    []uint64
		hot, cold []int
	}{
		{[]uint64{4, 9, 1, 7}, []int{1, 3}, []int{2, 0}},
		{[]uint64{5, 5, 5}, []int{0, 1}, []int{0, 1}}, // ties: the lower index first
		{[]uint64{2, 0, 0, 3}, []int{3, 0}, []int{1, 2}},
		{[]uint64{8}, []int{0}, []int{0}},
		{nil, nil, nil},
	} {
		hot, cold := Extremes(c.counts, 2)
		if !slices.Equal(hot, c.hot) || !slices.Equal(cold, c.cold) {
			t.Errorf("%v: hot %v and cold %v, want %v and %v", c.counts, hot, cold, c.hot, c.cold)
		}
	}
}
