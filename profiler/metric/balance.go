package metric

import "math"

// Balance describes how evenly load is spread, for example over the experts of a layer.
type Balance struct {
	Total   uint64
	MaxMean float64 // largest / mean: 1 is uniform, len(counts) means that one entry takes everything
	CV      float64 // coefficient of variation: standard deviation / mean
	Entropy float64 // Shannon entropy / log(len(counts)): 1 is uniform, 0 means that one entry takes everything
	Dead    int     // entries that are 0
}

// LeastPicks is the minimum number of picks per expert of a layer for its imbalance. With fewer, chance alone makes max/mean
// large: with 16 and 256 even experts it is 1.75.
const LeastPicks = 16

// BalanceOf computes the balance of counts. If all counts are 0, only Dead is set.
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

// Extremes returns the indices of the k largest counts, largest first, and of the k smallest, smallest first. On a tie
// the lower index comes first.
func Extremes(counts []uint64, k int) (hot, cold []int) {
	k = min(k, len(counts))
	hot, cold = make([]int, 0, k), make([]int, 0, k)
	for i := range counts {
		hot = insert(hot, i, k, func(a, b int) bool { return counts[a] > counts[b] })
		cold = insert(cold, i, k, func(a, b int) bool { return counts[a] < counts[b] })
	}
	return hot, cold
}

// insert adds index i to an ordered list of at most k indices, behind every entry that i does not precede.
func insert(list []int, i, k int, before func(a, b int) bool) []int {
	at := len(list)
	for at > 0 && before(i, list[at-1]) {
		at--
	}
	if at >= k {
		return list
	}
	list = append(list[:min(len(list), k-1)], 0)
	copy(list[at+1:], list[at:])
	list[at] = i
	return list
}
