package metric

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRanking(t *testing.T) {
	var r Ranking
	if r.Rank(nil); r.Len() != 0 || r.Total() != 0 || r.Covered(3) != 0 {
		t.Errorf("nothing is ranked as %+v", r)
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
		t.Errorf("%d picks of none, %d of all", r.Covered(-1), r.Total())
	}
}

// However large the counts, every index is there once and no count is larger than the one before.
func TestRankingHoldsEach(t *testing.T) {
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
	// 100 B of weights, of which a token reads 40: 60 B belong to the 3 of 4 experts that it does not pick, so 80 to all, of 2 layers.
	if b, ok := ExpertBytes(100, 40, 4, 1, 8); !ok || b != 10 {
		t.Errorf("an expert has %v bytes, want 10", b)
	}
	for _, c := range [][2]float64{{0, 0}, {40, 40}, {30, 40}, {100, 0}} {
		if b, ok := ExpertBytes(c[0], c[1], 4, 1, 8); ok {
			t.Errorf("of %v it is known that an expert has %v bytes", c, b)
		}
	}
	if _, ok := ExpertBytes(100, 40, 4, 4, 8); ok {
		t.Error("where all experts are used, their size is known")
	}
}
