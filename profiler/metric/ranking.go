package metric

import (
	"math/bits"
	"slices"
)

// Ranking orders experts by their picks, most picked first, on a tie the lower index first. In this order they are kept
// on the faster device when not all fit. The zero value is empty. Rank reuses the memory.
type Ranking struct {
	order []uint64 // picks in the upper bits, complement of the index in the lower shift bits
	sums  []uint64 // total picks of the first i+1 experts
	shift int      // bits of an index
}

// Rank orders experts by counts, indexed by expert. Very large counts (from 2^48 with 2^16 experts) rank as equal.
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

// Len returns the number of experts.
func (r *Ranking) Len() int { return len(r.order) }

// At returns the index of the expert at a rank, from 0.
func (r *Ranking) At(rank int) int {
	mask := uint64(1)<<r.shift - 1
	return int(mask - r.order[rank]&mask)
}

// Covered returns the total picks of the first n experts.
func (r *Ranking) Covered(n int) uint64 {
	if n = min(n, len(r.sums)); n <= 0 {
		return 0
	}
	return r.sums[n-1]
}

// Total returns the picks of all experts.
func (r *Ranking) Total() uint64 { return r.Covered(len(r.sums)) }

// ExpertBytes returns the size of one expert in bytes, or false if it cannot be derived. A token touches all weights
// except those of the experts that it does not pick, so (weights - perToken) / (1 - used / experts) is the size of all
// experts. weights is the size of the file, perToken the bytes that a token touches; experts and used count per layer,
// all counts the experts of the whole model.
func ExpertBytes(weights, perToken float64, experts, used, all int) (float64, bool) {
	unused := 1 - float64(used)/float64(max(experts, 1))
	if unused <= 0 || weights <= perToken || perToken <= 0 || all <= 0 {
		return 0, false
	}
	return (weights - perToken) / unused / float64(all), true
}
