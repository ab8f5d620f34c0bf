package metric

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRanking(t *testing.T) {
	var r Ranking
	if r.Rank(nil); r.Len() != 0 || r.Total() != 0 || r.Covered(3) != 0 {
		t.Errorf("empty ranking: %+v", r)
	}
	r.Rank([]uint64{3, 0, 7, 3, 9})
	var order []int
	for i := range r.Len() {
		order = append(order, r.At(i))
	}
	if want := []int{4, 2, 0, 3, 1}; !slices.Equal(order, want) {
		t.Errorf("ranked %v, want %v", order, want)
	}
	for n, want := range []uint64{0, 9, 16, 19, 22, 22, 22} {
		if got := r.Covered(n); got != want {
			t.Errorf("the first %d have %d picks, want %d", n, got, want)
		}
	}
	if r.Covered(-1) != 0 || r.Total() != 22 {
		t.Errorf("%d picks for -1 experts, %d in total", r.Covered(-1), r.Total())
	}
}

// For any counts, every index appears once and counts do not increase with the rank.
func TestRankingIsAPermutation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		counts := rapid.SliceOfN(rapid.Uint64Range(0, 1<<47), 0, 300).Draw(rt, "counts")
		var r Ranking
		r.Rank(counts)
		seen := make([]bool, len(counts))
		for i := range r.Len() {
			at := r.At(i)
			if seen[at] || i > 0 && counts[at] > counts[r.At(i-1)] {
				rt.Fatalf("index %d has rank %d of %v", at, i, counts)
			}
			seen[at] = true
		}
		if r.Len() != len(counts) {
			rt.Fatalf("%d of %d are ranked", r.Len(), len(counts))
		}
	})
}

func TestExpertBytes(t *testing.T) {
	// A token reads 40 of 100 B of weights: 60 B are the 3 of 4 experts that it does not pick, so all experts of 2
	// layers take 80.
	if b, ok := ExpertBytes(100, 40, 4, 1, 8); !ok || b != 10 {
		t.Errorf("an expert has %v bytes, want 10", b)
	}
	for _, c := range [][2]float64{{0, 0}, {40, 40}, {30, 40}, {100, 0}} {
		if b, ok := ExpertBytes(c[0], c[1], 4, 1, 8); ok {
			t.Errorf("%v: got %v bytes per expert, want false", c, b)
		}
	}
	if _, ok := ExpertBytes(100, 40, 4, 4, 8); ok {
		t.Error("the size is derived although all experts are used")
	}
}
