package metric

import (
	"cmp"
	"math"
	"slices"
)

// Balance describes how evenly load is spread over the experts of a layer (or over anything else).
type Balance struct {
	Total   uint64
	MaxMean float64 // largest / mean; 1 is even, len(counts) is everything on one
	CV      float64 // coefficient of variation: standard deviation / mean
	Entropy float64 // Shannon entropy / log(len(counts)): 1 is even, 0 is everything on one
	Dead    int     // entries that are 0
}

// BalanceOf computes the balance of counts; all zero if there are none.
func BalanceOf(counts []uint64) (b Balance) {
	var top uint64
	for _, c := range counts {
		b.Total += c
		top = max(top, c)
		if c == 0 {
			b.Dead++
		}
	}
	if b.Total == 0 {
		return Balance{Dead: b.Dead}
	}
	n, total := float64(len(counts)), float64(b.Total)
	mean := total / n
	b.MaxMean = float64(top) / mean
	var variance, entropy float64
	for _, c := range counts {
		variance += (float64(c) - mean) * (float64(c) - mean) / n
		if p := float64(c) / total; p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	b.CV = math.Sqrt(variance) / mean
	if n > 1 {
		b.Entropy = entropy / math.Log(n)
	}
	return b
}

// Extremes are the indices of the k largest counts, largest first, and of the k smallest, smallest first; the lower index wins a tie.
func Extremes(counts []uint64, k int) (hot, cold []int) {
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	k = min(k, len(order))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	hot = slices.Clone(order[:k])
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), a-b) })
	return hot, slices.Clone(order[:k])
}
