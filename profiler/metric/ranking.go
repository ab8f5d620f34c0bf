package metric

import (
	"math/bits"
	"slices"
)

// Ranking orders experts by their picks, the most picked first and of equals the lower index: the order in which to keep them on the
// faster device where there is not room for all. Its zero value ranks nothing, and it can be used again and again.
type Ranking struct {
	order []uint64 // picks, and below them the complement of the index
	sums  []uint64 // picks of the first i+1
	shift int      // bits of an index
}

// Rank takes the picks of all experts. Counts beyond 2^48 of 2^16 experts rank alike.
func (r *Ranking) Rank(counts []uint64) {
	r.shift = bits.Len(uint(len(counts)))
	mask := uint64(1)<<r.shift - 1
	r.order, r.sums = r.order[:0], r.sums[:0]
	for i, n := range counts {
		r.order = append(r.order, min(n, ^uint64(0)>>r.shift)<<r.shift|mask-uint64(i))
	}
	slices.Sort(r.order)
	slices.Reverse(r.order)
	sum := uint64(0)
	for i := range r.order {
		sum += counts[r.At(i)]
		r.sums = append(r.sums, sum)
	}
}

// Len is how many experts are ranked.
func (r *Ranking) Len() int { return len(r.order) }

// At is the index of the expert of a rank, from 0.
func (r *Ranking) At(rank int) int {
	mask := uint64(1)<<r.shift - 1
	return int(mask - r.order[rank]&mask)
}

// Covered is how many picks the first n experts have had.
func (r *Ranking) Covered(n int) uint64 {
	if n = min(n, len(r.sums)); n <= 0 {
		return 0
	}
	return r.sums[n-1]
}

// Total is how many picks all have had.
func (r *Ranking) Total() uint64 { return r.Covered(len(r.sums)) }

// ExpertBytes is the size of one of all experts of a model, false if it cannot be known. A token touches all weights but those of the
// experts that it does not pick, so what the size of the file and the bytes per token differ by is theirs: (weights - perToken) /
// (1 - used / experts) / all, where experts and used are those of one layer.
func ExpertBytes(weights, perToken float64, experts, used, all int) (float64, bool) {
	unused := 1 - float64(used)/float64(max(experts, 1))
	if unused <= 0 || weights <= perToken || perToken <= 0 || all <= 0 {
		return 0, false
	}
	return (weights - perToken) / unused / float64(all), true
}
